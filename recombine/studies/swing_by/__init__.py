"""The study in `study.py`; what it computes, judges and draws in the files beside it."""
