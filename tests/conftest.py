"""One thread: on a small runtime several threads make the same tests take six seconds or two
minutes."""

import os

os.environ["OMP_NUM_THREADS"] = "1"

import torch

torch.set_num_threads(1)
