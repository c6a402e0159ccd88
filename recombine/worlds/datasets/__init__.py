"""Labelled pictures in the layouts people have: tables beside files, class folders, shards, arrays."""
