"""The training loop: resumable, exact, the same on one process or several."""
