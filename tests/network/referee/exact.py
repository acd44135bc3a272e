"""When messages arrive: by max-min shares in exact fractions, and first come, first served.

Written from ``docs/explanation/instants.md``, ``seam.md`` and the two models' texts; imports nothing of
cosim. A world is links with rates and latencies, and flows with paths, dependencies, weights and priorities.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

Time = int
"""Picoseconds."""


@dataclass(frozen=True)
class Flow:
    """``after``: flows before it by number, and whether their completion counts or their start; with none it
    begins at ``start``, else ``delay`` after the last of them. Flows of one channel go one after another.
    """

    path: tuple[int, ...]
    size: int
    channel: int
    start: Time = 0
    delay: Time = 0
    after: tuple[tuple[int, bool], ...] = ()
    weight: Fraction = Fraction(1)
    priority: int = 0


@dataclass(frozen=True)
class World:
    """``rate``: bytes in a picosecond of each link; ``changes``: (time, link, new rate), in order."""

    rate: tuple[Fraction, ...]
    latency: tuple[Time, ...]
    flows: tuple[Flow, ...]
    changes: tuple[tuple[Time, int, Fraction], ...] = ()


def shares(rate: Sequence[Fraction], flows: Sequence[Flow]) -> list[Fraction]:
    """Weighted max-min, class after class, by filling all flows at the same level until a link is full."""
    left, given = list(rate), [Fraction(0)] * len(flows)
    for priority in sorted({flow.priority for flow in flows}):
        rising = [k for k, flow in enumerate(flows) if flow.priority == priority]
        while rising:
            weights: dict[int, Fraction] = {}
            for k in rising:
                for link in flows[k].path:
                    weights[link] = weights.get(link, Fraction(0)) + flows[k].weight
            step = min(left[link] / weight for link, weight in weights.items())
            for link, weight in weights.items():
                left[link] -= step * weight
            for k in rising:
                given[k] += step * flows[k].weight
            rising = [k for k in rising if all(left[link] for link in flows[k].path)]
    return given


class _Dependencies:
    """Who starts when; ``starts`` is a heap of (time, flow)."""

    def __init__(self, flows: Sequence[Flow]) -> None:
        self.flows = flows
        self.missing = [len(flow.after) for flow in flows]
        self.latest = [0] * len(flows)
        self.waiting: dict[tuple[int, bool], list[int]] = {}
        for k, flow in enumerate(flows):
            for one in flow.after:
                self.waiting.setdefault(one, []).append(k)
        self.starts = [(flow.start, k) for k, flow in enumerate(flows) if not flow.after]
        heapq.heapify(self.starts)

    def tell(self, flow: int, completed: bool, time: Time) -> None:
        """A flow has started, or will have completed at that time."""
        for k in self.waiting.get((flow, completed), ()):
            self.missing[k] -= 1
            self.latest[k] = max(self.latest[k], time)
            if not self.missing[k]:
                heapq.heappush(self.starts, (self.latest[k] + self.flows[k].delay, k))

    def at(self, now: Time) -> Iterator[int]:
        """Flows that start now."""
        while self.starts and self.starts[0][0] == now:
            _, k = heapq.heappop(self.starts)
            self.tell(k, False, now)
            yield k


def fair_share(world: World) -> list[Time]:
    """When each flow completes. A flow has drained at a whole picosecond, rounded up."""
    flows, rate = world.flows, list(world.rate)
    depend, changes = _Dependencies(flows), deque(world.changes)
    done: list[Time] = [-1] * len(flows)
    channels: dict[int, deque[int]] = {}
    left: dict[int, Fraction] = {}
    speed: dict[int, Fraction] = {}
    now = 0

    def begin(channel: int) -> None:
        """The next of a channel; one without bytes has drained at once."""
        while channels[channel]:
            k = channels[channel][0]
            if flows[k].size:
                left[k] = Fraction(flows[k].size)
                return
            drained(k)

    def drained(k: int) -> None:
        channels[flows[k].channel].popleft()
        done[k] = now + sum(world.latency[link] for link in flows[k].path)
        depend.tell(k, True, done[k])

    while -1 in done:
        ends = {k: now + ceil(left[k] / speed[k]) for k in left if speed[k]}
        coming = [
            *ends.values(),
            *(time for time, _ in depend.starts[:1]),
            *(c[0] for c in list(changes)[:1]),
        ]
        then = min(coming)
        for k in left:
            left[k] -= speed[k] * (then - now)
        now = then
        for k in sorted(k for k, time in ends.items() if time == now):
            del left[k]
            drained(k)
            begin(flows[k].channel)
        while changes and changes[0][0] == now:
            _, link, new = changes.popleft()
            rate[link] = new
        for k in depend.at(now):
            queue = channels.setdefault(flows[k].channel, deque())
            queue.append(k)
            if len(queue) == 1:
                begin(flows[k].channel)
        active = sorted(left)
        speed = dict(zip(active, shares(rate, [flows[k] for k in active]), strict=True))
    return done


NS = 1000


def first_come(world: World) -> tuple[list[Time], bool]:
    """When each flow completes, whole messages one after the other on each link, times in whole nanoseconds;
    and whether two came to a link at one instant, in an order that the rule for that must say.
    """
    flows = world.flows
    depend = _Dependencies(flows)
    done: list[Time] = [-1] * len(flows)
    free = [0] * len(world.rate)
    last = [-1] * len(world.rate)
    moving: list[tuple[Time, int, int]] = []
    tie = False
    while -1 in done:
        now = min(queue[0][0] for queue in (moving, depend.starts) if queue)
        for k in depend.at(now):
            heapq.heappush(moving, (now, k, 0))
        while moving and moving[0][0] == now:
            _, k, hop = heapq.heappop(moving)
            if hop == len(flows[k].path):
                done[k] = now
                depend.tell(k, True, now)
                continue
            link = flows[k].path[hop]
            tie |= last[link] == now
            last[link] = now
            took = Fraction(flows[k].size) / world.rate[link] / NS
            begun = max(now, free[link])
            free[link] = begun + int(took) * NS
            arrives = begun + int(Fraction(world.latency[link], NS) + took) * NS
            heapq.heappush(moving, (arrives, k, hop + 1))
    return done, tie
