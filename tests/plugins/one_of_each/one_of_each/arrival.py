"""Jobs that come ever later."""

from __future__ import annotations

from pydantic import Field

from cosim.plugins import Arrival, Context, TimePs


class Doubling(Arrival):
    """At once, after a time, after twice that, and so on"""

    first: TimePs = Field(gt=0, description="of the second job")

    def times(self, count: int, context: Context) -> list[int]:
        return [0, *(self.first << k for k in range(count - 1))]
