"""Samples, activations and denoisers -> numbers. Everything here takes functions and arrays, never
trainers."""
