"""What one run does: a config, what it needs, its training, its measurements. Studies list runs;
the pipeline runs them."""
