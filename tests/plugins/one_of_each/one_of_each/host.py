"""A host whose operators are issued from two threads."""

from __future__ import annotations

from pydantic import Field

from cosim.context import Context
from cosim.plugins import Host, HostSpec, TimePs


class TwoThreads(HostSpec):
    """Each of two threads issues every second operator."""

    each: TimePs = Field(ge=0, description="what a thread takes for one")

    def build(self, context: Context) -> Host:
        return Host(name="two threads", operator_time=f"{self.each // 2}ps", source="their page")
