"""What something costs without a clock: how many functions it calls, however busy the machine is."""

from __future__ import annotations

import sys
from collections.abc import Callable


def calls(function: Callable[[], object]) -> int:
    """How many functions, of Python or of C, are called from here until ``function`` returns.

    A loop over columns calls as many for a thousand rows as for ten; one over objects doesn't. Collections
    of garbage add a few, so compare with room.
    """
    seen = 0

    def count_one(_frame: object, event: str, _argument: object) -> None:
        nonlocal seen
        seen += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count_one)
    try:
        function()
    finally:
        sys.setprofile(before)
    return seen
