"""Scenes: solids on a grey floor, rendered after CLEVR by a batched ray tracer, or loaded from
CLEVR itself."""
