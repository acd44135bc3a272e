"""``cosim``, and ``python -m cosim``: the command line, from the first moment that it can be interrupted."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command; Ctrl-C while it is still being imported ends it as it does later, by 130."""
    try:
        from cosim.cli import main as command
    except KeyboardInterrupt:
        sys.exit(130)
    command()


if __name__ == "__main__":
    main()
