"""What makes collectives slow, from what ranks logged and what ports counted: one cause, or none.

A slow rank: no communicator is slow, and one rank is late. A slow NIC: the slow communicators, two or more,
share one rank. A collision: a port carries half as much again, one way, as ports that carry alike the
other way; two paths that were to be apart have become one. A slow link: of ports that carry alike, just
one never reaches nine tenths of their highest rate, in or out.

Samples of ports have to be shorter than a step of a ring: over longer ones, all links of a ring have the rate
of the slowest, and no link is named. Ports are those of the switches next to hosts.

Not told: several causes at once, a slow link of which only one direction is slow, and which ranks a port
serves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cosim.results.traffic.logged import LoggedAnalysis
from cosim.results.traffic.ports import F64, PortAnalysis

RANK = "slow rank"
NIC = "slow NIC"
COLLISION = "paths collide"
LINK = "slow link"

_ALIKE = 0.05
_MORE = 1.5
_BELOW = 0.9


@dataclass(frozen=True)
class SlowCause:
    """``kind``, one of this module's, and ``place``: a process, or a port; ``more`` says how it shows."""

    kind: str
    place: str
    more: str


@dataclass(frozen=True)
class CauseFound:
    """Whether ranks logged that something is slow, and why it is; None: it can't be told."""

    slow: bool
    cause: SlowCause | None


def find_cause(logged: LoggedAnalysis, ports: PortAnalysis) -> SlowCause | None:
    """Name the one cause that logs and counters of the same time agree on; None: there is none, or several
    would do.
    """
    if not logged.slow_groups:
        late = logged.slow_ranks
        if len(late) != 1:
            return None
        return SlowCause(RANK, late[0].process, f"the last in {100 * late[0].share:.1f} % of its collectives")
    shared = set.intersection(*(set(one.processes) for one in logged.slow_groups))
    if len(logged.slow_groups) > 1 and len(shared) == 1:
        return SlowCause(NIC, shared.pop(), f"{len(logged.slow_groups)} slow communicators share it")
    crowded = max(_crowded(ports), default=None)
    if crowded is not None:
        return SlowCause(COLLISION, ports.names[crowded[2]], _how_crowded(crowded))
    slow = list(_slow(ports))
    if len(slow) == 1:
        at, part = slow[0]
        more = f"at most {100 * part:.0f} % of the highest rate of ports alike"
        return SlowCause(LINK, ports.names[at], more)
    return None


def _how_crowded(crowded: tuple[bool, float, int]) -> str:
    outward, ratio, _ = crowded
    return f"{ratio:.2f} times as much {'out' if outward else 'in'} as ports that carry alike"


def _crowded(ports: PortAnalysis) -> Iterator[tuple[bool, float, int]]:
    """Ports with more: whether outward, where two paths join, how many times as much, and the number."""
    for group in (one for one in ports.groups if min(one.in_bps, one.out_bps) > 0):
        for outward, here, there in (
            (True, ports.out_bps / group.out_bps, ports.in_bps / group.in_bps),
            (False, ports.in_bps / group.in_bps, ports.out_bps / group.out_bps),
        ):
            for at in np.flatnonzero((here >= _MORE) & (np.abs(there - 1) < _ALIKE)).tolist():
                yield outward, float(here[at]), at


def _slow(ports: PortAnalysis) -> Iterator[tuple[int, float]]:
    """Ports whose highest rates, in and out, both lie below those of ports that carry alike."""
    number = {name: at for at, name in enumerate(ports.names)}
    for group in ports.groups:
        inside = np.array([number[name] for name in group.ports])
        part = np.maximum(_of_median(ports.in_peak_bps[inside]), _of_median(ports.out_peak_bps[inside]))
        for at in np.flatnonzero(part < _BELOW).tolist():
            yield int(inside[at]), float(part[at])


def _of_median(rates: F64) -> F64:
    return rates / max(float(np.median(rates)), 1.0)
