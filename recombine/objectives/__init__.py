"""What training minimises, and how to draw from what it learned; loss and sampler face each
other."""
