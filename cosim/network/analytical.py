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
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from cosim.network.arrays import Arrays
from cosim.network.changes import CHANGE, NEED_CHANGES, NEED_ROUTES, to_come
from cosim.network.changing_loop import NEED_MESSAGES, run_changing
from cosim.network.compiled import CompiledNetwork, live
from cosim.network.drains import DRAIN
from cosim.network.flows import I32
from cosim.network.growing import GrowingArrays
from cosim.network.leg_routes import move
from cosim.network.legs import COUNTS, LANE, MESSAGE, NONE, Legs
from cosim.topology.graph import F64, Topology
from cosim.units import PS_PER_NS

_INSTANT = "instant", "spare", "other"


def bytes_per_ns(rate_bps: F64) -> F64:
    """In ASTRA-sim's own order of operations: GB/s * 2^30 / 10^9, here with bits/s = GB/s * 2^33."""
    return rate_bps / 8.0 / 1e9


class AnalyticalNetwork(CompiledNetwork):
    """Base of the two models: a loop of their own where links don't change, one for both where they do."""

    quantum_ps = PS_PER_NS
    link_changes = True
    in_turn: ClassVar[bool]
    """Whether a link sends one message after the other."""

    @property
    @abstractmethod
    def plain_loop(self) -> Callable[..., int]:
        """The model's loop where links don't change."""

    @abstractmethod
    def plain_columns(self) -> Arrays:
        """What that loop works on."""

    @abstractmethod
    def _open_plain(self, topology: Topology) -> None:
        """Make it."""

    def _grow_plain(self) -> None:
        """Make room for the events of an instant; of a loop that asks for it."""

    @abstractmethod
    def _copy_plain(self) -> dict[str, Any]:
        """Copy it; see :class:`~cosim.network.compiled.CompiledNetwork`."""

    @property
    def _is_changing(self) -> bool:
        return self._topology.changes is not None

    def _open_model(self, topology: Topology, seed: int) -> None:
        del seed
        self._open_plain(topology)
        if not self._is_changing:
            return
        lanes = np.zeros(topology.num_links, LANE)
        lanes["rate"] = bytes_per_ns(topology.link_rate_bps)
        lanes["latency"] = topology.link_latency_ps
        lanes["head"] = NONE
        self._view: Legs | None = None
        self._legs = GrowingArrays(
            {
                "counts": np.zeros(1, COUNTS),
                "lanes": lanes,
                "messages": np.zeros(0, MESSAGE),
                "drains": np.zeros(0, DRAIN),
                "changes": np.zeros(0, CHANGE),
                "path_now": np.zeros(64, np.int64),
                **{name: np.zeros(0, np.int32) for name in _INSTANT},
            }
        )
        self._legs["counts"]["in_turn"], self._legs["counts"]["free"] = self.in_turn, NONE
        self._changes.fill(self._legs)

    def _bind_model(self, first: int, job: int, src: I32, dst: I32, channel: I32) -> None:
        del job, dst, channel
        if self._is_changing:
            self._legs.reserve("path_now", first + len(src))
            self._legs["path_now"][first : first + len(src)] = np.arange(first, first + len(src))
            self._avoid_dead_links()

    def _avoid_dead_links(self) -> None:
        rows, places = self._detours.places(
            self._arrays["path_ptr"], self._arrays["path_link"], self._append_paths
        )
        self._legs["path_now"][rows] = places

    def _reroute(self) -> None:
        """Find paths for the change of routes that was just taken, and move messages under way."""
        counts = self._legs["counts"][0]
        self._detours.dead = self._changes.dead(int(counts["change"]) - 1)
        avoided = self._legs["lanes"]["avoided"]
        avoided[:] = 0
        avoided[list(self._detours.dead)] = 1
        self._legs["path_now"] = np.arange(self._ptr_used)
        self._avoid_dead_links()
        calendar = self._arrays["calendar"]
        need = int(calendar.state["num_events"][0]) + int(counts["under_way"])
        if need > len(calendar.events):
            self._grow_calendar(1 << (need - 1).bit_length())
        move(self.core(), self._changing_columns())
        if counts["change"] == len(self._legs["changes"]):
            self._changes.fill(self._legs)

    def _grow_model(self, what: int) -> None:
        if what == NEED_MESSAGES:
            for name in ("messages", "drains"):
                self._legs.reserve(name, max(1024, 2 * len(self._legs[name])))
        elif what == NEED_CHANGES:
            self._changes.fill(self._legs)
        elif what == NEED_ROUTES:
            self._reroute()
        elif not self._is_changing:
            self._grow_plain()
        else:
            for name in _INSTANT:
                self._legs.reserve(name, len(self._arrays["calendar"].events))

    def _copy_model(self) -> dict[str, Any]:
        if not self._is_changing:
            return self._copy_plain()
        counts = self._legs["counts"][0]
        used = {
            "counts": 1,
            "messages": int(counts["used"]),
            "drains": int(counts["used"]),
            "lanes": len(self._legs["lanes"]),
        }
        copied = {name: live(self._legs[name], n) for name, n in used.items()}
        return {"_legs": GrowingArrays(self._legs | copied)}

    @property
    def loop(self) -> Any:
        """See :class:`~cosim.network.compiled.CompiledNetwork`."""
        return run_changing if self._is_changing else self.plain_loop

    def columns(self) -> Arrays:
        """See :class:`~cosim.network.compiled.CompiledNetwork`."""
        return self._changing_columns() if self._is_changing else self.plain_columns()

    def _changing_columns(self) -> Legs:
        self._view = Legs.of(self._view, **self._legs)
        return self._view

    def _next_instant(self) -> int:
        # A grant is closed for completions, so it has to end before a drain that was not taken yet.
        start = super()._next_instant()
        if not self._is_changing or not self._legs["counts"]["num_drains"][0]:
            return start
        return min(start, int(self._legs["drains"][0]["time"]) - 1)

    def has_work(self) -> bool:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        if super().has_work() or not self._is_changing:
            return super().has_work()
        counts = self._legs["counts"][0]
        return bool(counts["num_drains"] or (counts["under_way"] and to_come(counts)))
