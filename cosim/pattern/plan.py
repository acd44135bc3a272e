"""A plan: one collective operation as chunks, each a sequence of phases.

A collective of D bytes may be split into chunks (ASTRA-sim's ``preferred-dataset-splits``); each chunk runs
through its phases (one for a flat algorithm; reduce-scatter, all-reduce, all-gather over the dimensions
for a hierarchical one). On each rank a phase waits in the queue it names; at most ``active`` phases run
in a queue of a rank at once, first come, first served. Chunks enter in order at the rank's arrival.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from cosim.pattern.contract import Algorithm
from cosim.pattern.template import I32, Collective, Template


@dataclass(frozen=True, slots=True)
class Turn:
    """Whose turn it is when a group's next operation begins: ASTRA-sim goes on where the one before stopped.

    ``queues[d]`` are dimension d's next queues of all, of the first half and of the second; a dimension that
    is not there begins with its first. ``variant`` is the next all-reduce chunk's, where there are several.
    """

    queues: tuple[tuple[int, int, int], ...] = ()
    variant: int = 0


FIRST = Turn()
"""Nothing came before."""


@dataclass(frozen=True, eq=False, slots=True)
class Phase:
    """One template on every sub-group: ``groups`` is int32[G, P] positions in the operation's group.

    ``participants`` int32[G, template.num_participants] begins with these; a folded template has more.
    """

    template: Template
    queue: int
    groups: I32
    participants: I32 = field(default_factory=lambda: np.zeros((0, 0), np.int32))

    def __post_init__(self) -> None:
        if not len(self.participants):
            object.__setattr__(self, "participants", self.groups)


@dataclass(frozen=True, eq=False, slots=True)
class Plan:
    """``chunks[c][p]`` is phase p of chunk c; ``active`` phases run in a queue of a rank at once.

    ``turn`` is for the plan of the group's next operation. With a ``carrier`` there are no chunks: code gives
    the messages while the run goes on.
    """

    collective: Collective
    num_ranks: int
    size_bytes: int
    algorithm: str
    chunks: tuple[tuple[Phase, ...], ...]
    active: int
    num_queues: int
    turn: Turn = FIRST
    carrier: Algorithm | None = None

    @property
    def num_messages(self) -> int:
        """Messages of all chunks, phases and sub-groups."""
        return sum(p.template.num_messages * len(p.groups) for chunk in self.chunks for p in chunk)

    @property
    def total_bytes(self) -> int:
        """Bytes of all messages; of what code carries, what ranks have at least to send."""
        if self.carrier is not None:
            return self.num_ranks * self.size_bytes
        return sum(p.template.total_bytes * len(p.groups) for chunk in self.chunks for p in chunk)
