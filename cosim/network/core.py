"""What the loops of all networks of this process share: ``cosim/kernel/src/core.c``."""

from __future__ import annotations

from cosim.kernel import Columns


class Core(Columns):
    """State that every such network has."""


class Reported(Columns):
    """The columns of completions, and the handles of groups that ended with them."""
