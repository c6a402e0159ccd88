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
    finally:
        exec("")  # Python forgets a Ctrl-C that was met: else, where it came while a class was
        # being made (an exec inside Python), it ends by SIGINT whatever status was set


if __name__ == "__main__":
    start()
