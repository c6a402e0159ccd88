"""Scenes: a model that has seen a few objects is asked for many, each where it is told."""
