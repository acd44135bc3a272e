"""``cosim``, and ``python -m cosim``: the command line, from the first moment that it can be interrupted."""

from __future__ import annotations

import gc
import sys

_ALLOCATIONS = 20_000
"""Between two looks for garbage: commands make hundreds of thousands of small things that stay."""


def main() -> None:
    """Run the command; Ctrl-C while it is still being imported ends it as it does later, by 130."""
    gc.disable()
    try:
        from cosim.cli import main as command
    except KeyboardInterrupt:
        sys.exit(130)
    # Modules stay: to look for garbage among them, again and again, took a seventh of a short run.
    gc.freeze()
    gc.set_threshold(_ALLOCATIONS, 10, 10)
    gc.enable()
    command()


if __name__ == "__main__":
    main()
