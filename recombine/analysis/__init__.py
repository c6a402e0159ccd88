"""Rows -> estimates with intervals over seeds -> claims."""
