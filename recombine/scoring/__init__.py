"""Does somebody's model compose? Pictures from anywhere, probes from anywhere, one table."""
