"""What leaves the laboratory: a trained model as a diffusers pipeline, a world as pictures."""
