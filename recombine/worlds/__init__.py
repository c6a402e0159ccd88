"""Worlds: factors -> picture -> factors, drawn in batches by torch on whatever device they are
given."""
