"""Links that fail, slow down and come back, on the wire and back; and the detours round them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

import numpy as np

from cosim.errors import FeatureError
from cosim.fabric.changes import LinkChange, LinkChanges, RouteChange
from cosim.fabric.detours import find_detours
from cosim.network.flows import I32, I64
from cosim.protocol.flat_flows import array
from cosim.protocol.refusal import Refusal
from cosim.protocol.v1 import network_simulator_pb2 as pb
from cosim.topology.graph import Topology
from cosim.units import format_time

MOST_EVENTS = 100_000  # all told when the session opens: some megabytes
_MOST_DEAD_SETS = 10_000  # each with the paths round it, of every pair on it
Triple = tuple[int, int, int]


class ToldChanges:
    """The changes of a topology's links that a session begins with: of endless ones the first."""

    def __init__(self, topology: Topology) -> None:
        changes = iter(topology.changes.changes if topology.changes is not None else ())
        self.changes = list(islice(changes, MOST_EVENTS))
        more = next(changes, None)
        self.until_ps = None if more is None else more.time_ps
        self.detection_ps = None if topology.changes is None else topology.changes.detection_ps
        self.has_rates = any(
            one.rate_bps not in (0.0, topology.link_rate_bps[one.link]) for one in self.changes
        )

    def check(self, time_ps: I64) -> None:
        """Refuse completions at times beyond what was told.

        Raises
        ------
        FeatureError
            The run came to a change that the other side doesn't know.
        """
        if self.until_ps is not None and len(time_ps) and time_ps.max() >= self.until_ps:
            raise FeatureError(
                f"events: a simulator elsewhere is told of the first {MOST_EVENTS:,}, which end at "
                f"{format_time(self.until_ps)}; the run goes on. Say how often they happen (times)"
            )


def dead_sets(changes: Iterable[LinkChange | RouteChange]) -> list[tuple[int, ...]]:
    """The sets of dead links that routing hears of, each once; their numbers on the wire count from 1."""
    heard = (one.dead for one in changes if isinstance(one, RouteChange))
    return list(dict.fromkeys(dead for dead in heard if dead))


class DetourTable:
    """What a client tells of detours: paths round each set of dead links, of triples whose own has one."""

    def __init__(self, topology: Topology, changes: LinkChanges) -> None:
        self._topology = topology
        self._sets: dict[tuple[int, ...], None] = {}
        self.hear(changes)
        self._told = len(self._sets)

    def hear(self, changes: Iterable[LinkChange | RouteChange]) -> None:
        """Know of more sets, where they are others than all before."""
        self._sets.update(dict.fromkeys(dead_sets(changes)))
        if len(self._sets) > _MOST_DEAD_SETS:
            raise FeatureError(
                f"{len(self._sets):,} different sets of links are dead at a time; a simulator "
                f"elsewhere is told of {_MOST_DEAD_SETS:,} at most"
            )

    @property
    def is_behind(self) -> bool:
        """Whether there are sets of which nothing was told yet."""
        return self._told < len(self._sets)

    def catch_up(self, message: pb.Paths, triples: Sequence[Triple]) -> None:
        """Add detours round sets that are new, of triples that were told before."""
        if triples:
            ends = np.array(triples, np.int32).T.copy()
            own = self._topology.paths(*ends)
            for number, dead in enumerate(self._sets, 1):
                if number > self._told:
                    self._add_round(message, number, dead, ends, *own)
        self._told = len(self._sets)

    def add(self, message: pb.Paths, triples: Sequence[Triple], ptr: I64, links: I32) -> None:
        """Add detours of triples with these paths to the message that tells of them."""
        message.dead_set.extend([0] * len(triples))
        ends = np.array(triples, np.int32).reshape(-1, 3).T.copy()
        for number, dead in enumerate(self._sets, 1):
            self._add_round(message, number, dead, ends, ptr, links)

    def _add_round(
        self, message: pb.Paths, number: int, dead: tuple[int, ...], ends: I32, ptr: I64, links: I32
    ) -> None:
        hit, found, way = find_detours(self._topology, dead, ends, ptr[:-1], ptr[1:], links)
        begin = message.end[-1] if message.end else 0
        for field, column in zip((message.src, message.dst, message.channel), ends, strict=True):
            field.extend(column[hit].tolist())
        message.end.extend((begin + found[1:]).tolist())
        message.link.extend(way.tolist())
        message.dead_set.extend([number] * len(hit))


def encode_events(rows: Sequence[tuple[int, int, bool, float]], into: pb.LinkEvents, *, rates: bool) -> None:
    """Write (time, link, up, rate) into a message, with their rates where they are asked for."""
    for time_ps, link, up, rate_bps in rows:
        into.time_ps.append(time_ps)
        into.link.append(link)
        into.up.append(up)
        if rates:
            into.rate_bps.append(rate_bps)


def decode_events(message: pb.LinkEvents, rate_bps: Any) -> LinkChanges:
    """Read events of links with these rates of their own.

    Raises
    ------
    Refusal
        INVALID_OPEN: columns of different lengths, times that don't ascend, links or rates that can't be.
    """
    time, link = array(message.time_ps, np.int64), array(message.link, np.int64)
    up, own = array(message.up, np.bool_), np.asarray(rate_bps, np.float64)
    if not len(time) == len(link) == len(up) or len(message.rate_bps) not in (0, len(time)):
        raise Refusal("INVALID_OPEN", "the columns of link events differ in length", field="link_events")
    if len(time) and (time[0] < 0 or (np.diff(time) < 0).any()):
        raise Refusal("INVALID_OPEN", "times of link events ascend, from 0", field="link_events.time_ps")
    if len(link) and link.max() >= len(own):
        raise Refusal(
            "INVALID_OPEN", f"an event of link {link.max()} of {len(own)}", field="link_events.link"
        )
    rate = array(message.rate_bps, np.float64) if message.rate_bps else own[link]
    if not (np.isfinite(rate) & (rate > 0))[up].all():
        raise Refusal("INVALID_OPEN", "a link's rate is above 0", field="link_events.rate_bps")
    if message.HasField("detection_ps") and message.detection_ps < 0:
        raise Refusal("INVALID_OPEN", "detection takes 0 ps or more", field="link_events.detection_ps")
    rows = zip(time.tolist(), link.tolist(), np.where(up, rate, 0.0).tolist(), strict=True)
    changes = [LinkChange(*row) for row in sorted(rows)]
    return LinkChanges(changes, message.detection_ps if message.HasField("detection_ps") else None)
