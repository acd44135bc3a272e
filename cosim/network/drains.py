"""What Python has of the heap of drains, which networks of the kernel have in common."""

from __future__ import annotations

from cosim.kernel import Columns


class DrainHeap(Columns):
    """When flows drain, the next one first: ``count`` of ``entries``; see ``kernel/src/drains.c``."""

    def next_ps(self) -> int | None:
        """When the next one drains; None where none is to."""
        return int(self.entries[0]["time"]) if self.count else None
