"""What needs no training: exact dynamics and exact distributions."""
