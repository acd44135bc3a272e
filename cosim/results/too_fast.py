"""What every run has to keep to: a link delivers at most its rate times the time.

A message begins and ends in an interval only if all its bytes come by its links within it. So no interval
holds more bytes than its link carries meanwhile. All intervals do so exactly if one server, which takes
whichever message has to end first, gets all of them done by their ends (W. Horn, "Some simple scheduling
algorithms", Naval Research Logistics Quarterly 21, 1974).

Not looked at:

- `congestion_unaware`, which gives a link away more than once on purpose;
- links that die under `congestion`, where what waited counts as arrived;
- links between switches where paths aren't known (balancers, routes that change).

All links into an endpoint count together, and so do all links out of it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cosim.engine.records import F64, I32, I64, MessageRecords, Records
from cosim.results.link_users import note_link_users
from cosim.units import format_size, format_time

SHARES_NOTHING = "congestion_unaware"
_BYTES = 1.0
"""Bytes of a message that rounding may leave out."""
_NS = 1000.0
"""By which an end may be early, for clocks of nanoseconds; `congestion_aware` rounds each message."""


@dataclass(frozen=True)
class TooFast:
    """What came by ``place`` too fast: ``size_bytes`` from ``begin_ps`` to ``end_ps``, which take
    ``least_ps``.
    """

    place: str
    size_bytes: int
    begin_ps: int
    end_ps: int
    least_ps: int

    def __str__(self) -> str:
        took = self.end_ps - self.begin_ps
        return (
            f"{self.place}: {format_size(self.size_bytes)} came in {format_time(took)}, from "
            f"{format_time(self.begin_ps)} on, and take {format_time(self.least_ps)} at least"
        )


@dataclass(frozen=True, eq=False)
class _LinkWork:
    """What a place can have carried by each time: ``done`` bytes by ``times_ps``, and ``rate`` bytes a ps
    after the last.
    """

    place: str
    times_ps: F64
    done: F64
    rate: float

    def by(self, times_ps: F64) -> F64:
        """What can have been carried by each of these times."""
        inside: F64 = np.interp(times_ps, self.times_ps, self.done)
        inside += np.maximum(times_ps - self.times_ps[-1], 0.0) * self.rate
        return inside

    def when(self, done: float) -> float:
        """The first time by which so much can have been carried."""
        if done <= self.done[-1]:
            return float(np.interp(done, self.done, self.times_ps))
        return float(self.times_ps[-1] + (done - self.done[-1]) / self.rate)


def too_fast(records: Records) -> list[TooFast]:
    """Places where messages came faster than links can deliver them; the worst interval of each.

    Raises
    ------
    ValueError
        The run has not kept its messages.
    """
    messages = records.messages
    if messages is None:
        raise ValueError("the run has kept no messages")
    if records.network == SHARES_NOTHING or records.interrupted:
        return []
    rounding = _NS if records.network == "congestion_aware" else 0.0
    found = [_worst(server, messages, mine, rounding) for server, mine in _places(records, messages)]
    return [one for one in found if one is not None]


def _places(records: Records, messages: MessageRecords) -> Iterator[tuple[_LinkWork, I64]]:
    """Each place, and the messages that come by it."""
    topology = records.topology
    away = np.flatnonzero((messages.src != messages.dst) & (messages.size_bytes > 0))
    for ends, of_link, side in (
        (messages.src, topology.link_src, "out of"),
        (messages.dst, topology.link_dst, "into"),
    ):
        of_endpoint = dict(_grouped(np.arange(topology.num_links), of_link))
        for endpoint, mine in _grouped(away, ends[away]):
            links = of_endpoint[endpoint]
            name = (
                topology.link_name(int(links[0]))
                if len(links) == 1
                else f"{side} {topology.node_names[endpoint]}"
            )
            yield from _served(records, name, links, mine)
    note_link_users(records)
    if records.info["link_users"] is None or not len(away):
        return
    ptr, taken = topology.paths(messages.src[away], messages.dst[away], np.zeros(len(away), np.int32))
    inner = (topology.link_src >= topology.num_endpoints) & (topology.link_dst >= topology.num_endpoints)
    message = np.repeat(away, np.diff(ptr))[inner[taken]]
    for link, mine in _grouped(message, taken[inner[taken]]):
        yield from _served(records, topology.link_name(link), np.array([link]), mine)


def _grouped(rows: I64, by: I32 | I64) -> Iterator[tuple[int, I64]]:
    order = np.argsort(by, kind="stable")
    values, first = np.unique(by[order], return_index=True)
    for value, mine in zip(values.tolist(), np.split(rows[order], first[1:]), strict=len(rows) > 0):
        yield int(value), mine


def _served(records: Records, place: str, links: I64, mine: I64) -> Iterator[tuple[_LinkWork, I64]]:
    """What links carry together, while their rates change; of links that die, see above."""
    topology = records.topology
    rates = {int(link): float(topology.link_rate_bps[link]) for link in links}
    times, done, rate = [0.0], [0.0], sum(rates.values())
    for change in topology.changes.changes if topology.changes is not None else ():
        if change.time_ps > records.end_ps:
            break
        if change.link not in rates:
            continue
        if change.rate_bps == 0 and records.network == "congestion":
            return
        done.append(done[-1] + (change.time_ps - times[-1]) * rate / 8e12)
        times.append(float(change.time_ps))
        rates[change.link] = change.rate_bps
        rate = sum(rates.values())
    yield _LinkWork(place, np.array(times), np.array(done), rate / 8e12), mine


def _worst(server: _LinkWork, messages: MessageRecords, mine: I64, rounding_ps: float) -> TooFast | None:
    """The interval from a begin to an end that most lacks; None: none does."""
    begin, end = messages.start_ps[mine].astype(np.float64), messages.end_ps[mine].astype(np.float64)
    size = np.maximum(messages.size_bytes[mine] - _BYTES - rounding_ps * server.rate, 0.0)
    release, due = server.by(begin), server.by(end + _NS) * (1.0 + 1e-12)
    late = _first_late(release, due, size)
    if late is None:
        return None
    within = np.flatnonzero(due <= due[late])
    order = within[np.argsort(-release[within], kind="stable")]
    inside = mine[order[: int(np.argmax(np.cumsum(size[order]) + release[order])) + 1]]
    total, first = int(messages.size_bytes[inside].sum()), int(messages.start_ps[inside].min())
    ends = server.when(float(server.by(np.array([float(first)]))[0]) + total)
    return TooFast(server.place, total, first, int(messages.end_ps[inside].max()), int(ends) - first)


def _first_late(release: F64, due: F64, size: F64) -> int | None:
    """The first message that a server of a byte a unit can't have done when it is due; None: none is."""
    order = np.argsort(release, kind="stable")
    waiting: list[tuple[float, int]] = []
    left = size.tolist()
    now = 0.0
    for message, comes in zip([*order.tolist(), -1], [*release[order].tolist(), np.inf], strict=True):
        while waiting and now < comes:
            ends, first = waiting[0]
            step = min(left[first], comes - now)
            now += step
            left[first] -= step
            if left[first] <= 0.0 or now > ends:
                if now > ends:
                    return first
                heapq.heappop(waiting)
        now = max(now, comes)
        if message >= 0:
            heapq.heappush(waiting, (float(due[message]), message))
    return None
