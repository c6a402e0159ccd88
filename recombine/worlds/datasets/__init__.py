"""Labelled pictures in the layouts people have: tables beside files, class folders, shards, arrays."""

HUB = "hf:"
"""How the name of a dataset of Hugging Face's hub begins."""
