"""`python -m recombine`, also under torchrun."""

import sys


def start() -> None:
    """The command; Ctrl-C while it is loading is one line too."""
    try:
        from recombine.cli import main

        main()
    except KeyboardInterrupt:
        print("recombine: stopped", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    start()
