"""Pipelines of diffusers as what this laboratory measures: denoisers, samplers and named features.
diffusers is imported only where a pipeline is opened."""
