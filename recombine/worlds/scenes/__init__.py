"""Scenes: solids on a grey floor, drawn after CLEVR by a batched ray tracer, or loaded from CLEVR
itself."""
