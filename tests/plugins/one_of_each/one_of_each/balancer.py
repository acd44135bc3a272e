"""A load balancer: each message of a connection takes the next path."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from cosim.plugins import Balancer


class Turns(Balancer):
    """One path after the other"""

    step: int = Field(1, ge=1, description="paths to go on by, each message")

    def choose(self, c: Any) -> None:
        c.path = (c.path + self.step * c.begins_message) % c.paths
