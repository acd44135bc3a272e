"""One of the networks that a hybrid is made of, and what the hybrid knows of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from cosim.errors import CausalityError, NetworkError
from cosim.network.flows import I32, I64, Completions, FlowGroup, flat_table
from cosim.network.outbox import Outbox
from cosim.network.shares import Share
from cosim.network.simulator import NetworkSimulator

_BELL = FlowGroup(0, flat_table([0], [0], [0]), np.zeros(1, np.int32), (1 << 62, 0), release="caller")
"""The mark that ends a round. Networks know groups by the caller's handles plus one; this one's is 0."""


@dataclass(eq=False)
class HybridChild:
    """One of a hybrid's networks: how far it is, what it is to be given, and its flows under way.

    ``shares``, ``left`` and ``running`` go by the caller's handles: its share of each group, how many of that
    have yet to complete, groups of which a flow started.
    """

    network: NetworkSimulator
    role: str
    peeks: bool
    releases: bool
    name: str
    granted: int = 0
    outbox: Outbox = field(default_factory=Outbox)
    shares: dict[int, Share] = field(default_factory=dict)
    left: dict[int, int] = field(default_factory=dict)
    running: set[int] = field(default_factory=set)
    bells: int = 0

    def open(self, group: FlowGroup, share: Share, release: Any) -> None:
        """Have its share of a group given."""
        self.outbox.open(replace(group, handle=group.handle + 1, table=share.table, release=release))
        self.shares[group.handle] = share
        self.left[group.handle] = share.table.num_flows

    def start(self, handle: I32, index: I64, start_ps: I64, cause_ps: I64) -> None:
        """Have flows given, in its own numbers but for the handles."""
        self.outbox.start_many(handle + np.int32(1), index, start_ps, cause_ps)
        self.running.update(handle.tolist())

    def advance(self, horizon: int) -> Completions:
        """Give what there is and run.

        Raises
        ------
        CausalityError, NetworkError
            It went back, too far, or not at all.
        """
        batch, before = self.outbox.take(), self.granted
        granted, done = self.network.advance(batch, horizon)
        if not before <= granted <= horizon:
            raise CausalityError(f"{self.name} granted {granted} ps; it may grant {before} to {horizon} ps")
        if granted == before < horizon and not len(done) and not len(batch.start_handle):
            raise NetworkError(f"{self.name} makes no progress at {granted} ps")
        self.granted = granted
        return replace(done, handle=done.handle - np.int32(1))

    def one_round(self, now: int) -> Completions:
        """One round of an instant: all starts that are due, and what they complete at once."""
        self.outbox.open(_BELL)
        self.outbox.start(_BELL.handle, 0, now, now)
        self.bells += 1
        done = self.advance(now + 1)
        if self.granted != now:
            raise NetworkError(f"{self.name} went on to {self.granted} ps, beyond a completion at {now} ps")
        return done.take(done.handle >= 0)

    def peek(self) -> int | None:
        """Its next completion, all that it is to be given included.

        Raises
        ------
        NetworkError
            It started what is to start at the horizon, and so completed it before it was asked to.
        """
        if not self.outbox.is_empty and len(self.advance(self.granted)):
            raise NetworkError(
                f"{self.name} completed a message that starts at {self.granted} ps in an advance to that "
                "horizon; what starts at the horizon waits for the next advance"
            )
        return self.network.peek()
