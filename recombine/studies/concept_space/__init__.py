"""Concept space: what a diffusion model learns first, and what it hides."""
