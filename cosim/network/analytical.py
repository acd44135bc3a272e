"""What ``congestion_aware`` and ``congestion_unaware`` share: links that fail, slow down and come back.

**congestion_unaware.** A message is sent at the rate of its slowest link. Where that changes, what has been
sent counts, and the rest goes at the new rate; over a dead link nothing goes. After the detection it goes on
by the path that its row has then, if routing found one, with what is left.

**congestion_aware.** A link sends one message after the other, and a node passes on whole messages. The one
on the wire goes on at the new rate with what is left, those that wait follow it. Over a dead link nothing
goes: what was sent has arrived, and after the repair the rest follows. After the detection those that wait,
and the one on the dead wire, go another way if routing found one: from the last node that both ways share, at
worst their source, and whole from there, for half a message is of no use to a node. What is past all dead
links stays on its way, also after the repair.

Without any way left both wait for the repair. Times are whole nanoseconds after a (leg's) start, cut off, or
rounded up where something changes within the last one. Where links don't change the models' own loops run.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cosim.fabric.detours import ChangeList
from cosim.kernel import Columns, kernel, record
from cosim.network.compiled import CompiledNetwork, LinkNumber
from cosim.network.core import DrainHeap
from cosim.network.flows import I64
from cosim.topology.graph import F64, Topology
from cosim.units import PS_PER_NS


def bytes_per_ns(rate_bps: F64) -> F64:
    """In ASTRA-sim's own order of operations: GB/s * 2^30 / 10^9, here with bits/s = GB/s * 2^33."""
    return rate_bps / 8.0 / 1e9


class Legs(Columns):
    """Messages on their way over links that change."""


class AnalyticalNetwork(CompiledNetwork):
    """Base of the two models: a loop of their own where links don't change, one for both where they do."""

    quantum_ps = PS_PER_NS
    link_changes = live_changes = True
    in_turn: ClassVar[bool]
    """Whether a link sends one message after the other."""

    plain_loop: ClassVar[str]
    """The name of the model's loop where links don't change."""
    plain_kind: ClassVar[int]
    """As what intervals of that loop are repeated."""
    _plain: Columns
    """What that loop works on."""

    @abstractmethod
    def _open_plain(self, topology: Topology) -> None:
        """Make it."""

    @abstractmethod
    def _numbers_of_plain(self, rate_bps: F64, latency_ps: I64) -> dict[LinkNumber, F64]:
        """What that loop's columns have of links."""

    def numbers_of_links(self, rate_bps: F64, latency_ps: I64) -> dict[LinkNumber, NDArray[Any]] | None:
        """See :class:`~cosim.network.compiled.CompiledNetwork`."""
        return None if self._is_changing else {**self._numbers_of_plain(rate_bps, latency_ps)}

    @abstractmethod
    def _copy_plain(self) -> Columns:
        """A copy, for a look ahead."""

    @property
    def _is_changing(self) -> bool:
        return self._topology.changes is not None

    def _open_model(self, topology: Topology, seed: int) -> None:
        del seed
        self._open_plain(topology)
        if not self._is_changing:
            return
        lanes = np.zeros(topology.num_links, record("leg_link"))
        lanes["rate"] = bytes_per_ns(topology.link_rate_bps)
        lanes["latency"] = topology.link_latency_ps
        lanes["head"] = kernel.NONE
        parts = {"drains": DrainHeap(), "changes": ChangeList()}
        self._legs = Legs(lanes=lanes, in_turn=self.in_turn, free_message=kernel.NONE, **parts)
        self._changes.fill(self._legs.changes)

    def _reroute(self, so_far: I64) -> None:
        del so_far
        legs = self._legs
        legs.lanes["avoided"] = 0
        legs.lanes["avoided"][list(self._paths.dead)] = 1
        kernel.move_messages(self.core, legs)

    def _copy_model(self) -> dict[str, Any]:
        if not self._is_changing:
            return {"_plain": self._copy_plain()}
        legs = self._legs
        used = int(legs.messages_used)
        return {
            "_legs": legs.copy(
                {"messages": used, "instant": 0, "spare": 0, "other": 0},
                lanes=legs.lanes.copy(),
                drains=legs.drains.copy({"entries": used}),
                changes=legs.changes.copy(),
            )
        }

    @property
    def loop(self) -> str:
        """See :class:`~cosim.network.compiled.CompiledNetwork`."""
        return "run_changing" if self._is_changing else self.plain_loop

    @property
    def repeated(self) -> int:
        """See :class:`~cosim.network.compiled.CompiledNetwork`: where links don't change."""
        return int(kernel.NONE) if self._is_changing else self.plain_kind

    @property
    def columns(self) -> Columns:
        """See :class:`~cosim.network.compiled.CompiledNetwork`."""
        return self._legs if self._is_changing else self._plain

    def has_work(self) -> bool:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        if super().has_work() or not self._is_changing:
            return super().has_work()
        changes = self._legs.under_way and self._legs.changes.to_come()
        return bool(self._legs.drains.count or changes)
