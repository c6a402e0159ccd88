"""`python -m recombine`, also under torchrun."""

from recombine.cli import main

main()
