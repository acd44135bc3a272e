"""Background traffic: messages whose times don't depend on anybody's progress.

Each source draws when to send, to whom and how much, from its seed alone. Messages start at their times
whether or not earlier ones have arrived (they queue behind those to the same destination). The job is one
pass over ``duration``; it ends when its last message has arrived. Kind ``background``.

Flow sizes: ``web_search`` is the workload of M. Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010,
doi:10.1145/1851182.1851192, ``data_mining`` that of A. Greenberg et al., "VL2", SIGCOMM 2009,
doi:10.1145/1592568.1592576, both with the points of pFabric's simulator (M. Alizadeh et al., SIGCOMM 2013,
doi:10.1145/2486001.2486031; packets of 1,460 bytes), straight lines between.

Not modelled: correlation between sources, diurnal change, requests that wait for replies.
"""

from __future__ import annotations

from itertools import pairwise
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field, PositiveInt, model_validator

from cosim.context import Context
from cosim.spec import RateBps, SizeBytes, TimePs
from cosim.workload.contract import WorkloadSpec
from cosim.workload.draws import UNIT, draw, exponential
from cosim.workload.program import NO_STREAM, DeviceMesh, Operation, OpKind, Peer, Program, Workload

_PACKET = 1460
_MILLION = 1_000_000
_CDF: dict[str, tuple[tuple[int, int], ...]] = {
    "web_search": (
        (0, 6), (150_000, 6), (200_000, 13), (300_000, 19), (400_000, 33), (530_000, 53), (600_000, 133),
        (700_000, 667), (800_000, 1333), (900_000, 3333), (970_000, 6667), (1_000_000, 20_000),
    ),
    "data_mining": (
        (0, 1), (500_000, 1), (600_000, 2), (700_000, 3), (800_000, 7), (900_000, 267), (950_000, 2107),
        (990_000, 66_667), (1_000_000, 666_667),
    ),
}  # fmt: skip
"""Millionths of flows that have at most so many packets."""


def size_bytes(sizes: str, uniform: int) -> int:
    """The flow size at ``uniform`` / UNIT of a distribution."""
    at = uniform * _MILLION // UNIT
    points = _CDF[sizes]
    for (low, small), (high, large) in pairwise(points):
        if at < high:
            packets = small * _PACKET + (large - small) * _PACKET * (at - low) // (high - low)
            return max(1, packets)
    return points[-1][1] * _PACKET


def mean_bytes(sizes: str) -> int:
    """Mean flow size of a distribution."""
    points = _CDF[sizes]
    doubled = sum(
        (high - low) * (small + large) * _PACKET for (low, small), (high, large) in pairwise(points)
    )
    return doubled // (2 * _MILLION)


class Background(WorkloadSpec):
    """Messages at times of their own: Poisson with a flow-size distribution, incast bursts, on-off"""

    copies_differ: ClassVar[bool] = True

    ranks: PositiveInt = Field(description="sources and destinations")
    pattern: Literal["poisson", "incast", "on_off"] = Field(
        "poisson",
        description="poisson: each rank to random others; incast: bursts of many ranks to one; "
        "on_off: each rank sends to the next at its rate, then nothing",
    )
    duration: TimePs = Field(gt=0, description="no message starts later")
    load: float = Field(
        0.3, gt=0, le=4, description="poisson, on_off: bytes sent over what rate could send, on average"
    )
    rate: RateBps | None = Field(None, description="poisson, on_off: of each rank's link")
    sizes: Literal["web_search", "data_mining", "fixed"] = Field(
        "fixed", description="poisson: distribution of message sizes"
    )
    size: SizeBytes | None = Field(None, gt=0, description="bytes of a message where sizes are fixed")
    fan_in: int | None = Field(None, ge=1, description="incast: senders of a burst; omitted: all others")
    every: TimePs | None = Field(None, gt=0, description="incast: mean time between two bursts")
    on: TimePs | None = Field(None, gt=0, description="on_off: mean length of a burst at full rate")
    seed: int | None = Field(
        None, ge=0, description="of all draws; omitted: the scenario's. Each job of a count draws its own"
    )

    @model_validator(mode="after")
    def _complete(self) -> Background:
        need = {"poisson": ("rate",), "incast": ("every", "size"), "on_off": ("rate", "on", "size")}
        wanted = [
            *need[self.pattern],
            *(["size"] if self.pattern == "poisson" and self.sizes == "fixed" else []),
        ]
        missing = [name for name in wanted if getattr(self, name) is None]
        if missing:
            fields = type(self).model_fields
            known = "\n  ".join(f"{name}: {fields[name].description}" for name in missing)
            raise ValueError(f"pattern {self.pattern} needs {' and '.join(missing)}\n  {known}")
        if self.ranks < 2:
            raise ValueError("background traffic needs at least 2 ranks")
        if self.fan_in is not None and self.fan_in >= self.ranks:
            raise ValueError(f"fan_in is {self.fan_in}, but there are {self.ranks - 1} other ranks")
        if self.pattern == "on_off" and self.load >= 1:
            raise ValueError(f"on_off sends at its rate while it is on; a load of {self.load} leaves no off")
        if self.pattern != "incast" and self._gap_ps() < 1:
            raise ValueError("its messages would follow each other in less than a picosecond; lower the rate")
        return self

    def _gap_ps(self) -> int:
        """Mean time from one message of a rank to its next; on_off: while it is on."""
        assert self.rate is not None
        mean = self.size if self.pattern == "on_off" or self.sizes == "fixed" else mean_bytes(self.sizes)
        assert mean is not None
        return round(mean * 8 * 10**12 / (self.rate * (1 if self.pattern == "on_off" else self.load)))

    def size_about(self) -> int:
        """Ranks, and a wait, a send and a receive of each message; of bursts, as many as there will be."""
        if self.pattern == "incast":
            assert self.every is not None
            messages = self.duration // self.every * (self.fan_in or self.ranks - 1)
        elif self.pattern == "on_off":
            assert self.on is not None
            on = int(self.duration * self.load)
            messages = self.ranks * (on // self.on + on // self._gap_ps())
        else:
            messages = self.ranks * (self.duration // self._gap_ps())
        return self.ranks + 3 * messages

    def idle_settings(self) -> list[tuple[str, str]]:
        """Settings that the pattern has no use for."""
        used = {
            "poisson": {"load", "rate", "sizes", *(["size"] if self.sizes == "fixed" else [])},
            "incast": {"size", "fan_in", "every"},
            "on_off": {"load", "rate", "size", "on"},
        }[self.pattern]
        every = ("load", "rate", "sizes", "size", "fan_in", "every", "on")
        why = f"pattern {self.pattern} has no use for it"
        return [(name, why) for name in every if name in self.model_fields_set and name not in used]

    def uses_seed(self) -> bool:
        """Without a seed of its own."""
        return self.seed is None

    def build(self, context: Context) -> Workload:
        """A program for each rank: waits, sends at their times, and what it receives.

        The context's seed is used where the spec has none.
        """
        own = draw(context.seed if self.seed is None else self.seed, context.copy)
        drawn = {"poisson": self._poisson, "incast": self._incast, "on_off": self._on_off}[self.pattern]
        messages = sorted(drawn(own))
        operations: list[list[Operation]] = [[] for _ in range(self.ranks)]
        at = [0] * self.ranks
        last: list[tuple[int, ...]] = [()] * self.ranks
        for number, (start, src, dst, size) in enumerate(messages):
            mine = operations[src]
            if start > at[src]:
                wait = Operation(
                    "wait",
                    OpKind.COMPUTE,
                    "clock",
                    last[src],
                    duration_ps=start - at[src],
                    phase="background",
                )
                mine.append(wait)
                at[src], last[src] = start, (len(mine) - 1,)
            for rank, kind, peer, deps in ((src, OpKind.SEND, dst, last[src]), (dst, OpKind.RECV, src, ())):
                operations[rank].append(
                    Operation(
                        f"{kind.value} {number}",
                        kind,
                        NO_STREAM,
                        deps,
                        size_bytes=size,
                        peer=Peer(rank=peer),
                        tag=number,
                        phase="background",
                    )
                )
        programs = tuple(Program(f"rank {rank}", tuple(ops)) for rank, ops in enumerate(operations))
        mesh = DeviceMesh({"rank": self.ranks})
        return Workload("background", mesh, programs, np.arange(self.ranks, dtype=np.int32))

    def _poisson(self, seed: int) -> list[tuple[int, int, int, int]]:
        """(Start, source, destination, bytes) of each message."""
        assert self.rate is not None
        mean = self.size if self.sizes == "fixed" else mean_bytes(self.sizes)
        assert mean is not None
        gap = self._gap_ps()
        out: list[tuple[int, int, int, int]] = []
        for src in range(self.ranks):
            now = number = 0
            while True:
                now += gap * exponential(seed, src, number, 0) // UNIT
                if now >= self.duration:
                    break
                other = draw(seed, src, number, 1) % (self.ranks - 1)
                drawn = draw(seed, src, number, 2) >> 32
                size = mean if self.sizes == "fixed" else size_bytes(self.sizes, drawn)
                out.append((now, src, other + (other >= src), size))
                number += 1
        return out

    def _incast(self, seed: int) -> list[tuple[int, int, int, int]]:
        assert self.every is not None
        assert self.size is not None
        out: list[tuple[int, int, int, int]] = []
        now = number = 0
        while True:
            now += self.every * exponential(seed, number, 0) // UNIT
            if now >= self.duration:
                return out
            goal = draw(seed, number, 1) % self.ranks
            others = sorted(set(range(self.ranks)) - {goal}, key=lambda r: (draw(seed, number, 2, r), r))
            out += [(now, src, goal, self.size) for src in sorted(others[: self.fan_in or self.ranks - 1])]
            number += 1

    def _on_off(self, seed: int) -> list[tuple[int, int, int, int]]:
        assert self.rate is not None
        assert self.on is not None
        assert self.size is not None
        step = self._gap_ps()
        silent = round(self.on * (1 - self.load) / self.load)
        out: list[tuple[int, int, int, int]] = []
        for src in range(self.ranks):
            now, burst = silent * exponential(seed, src, 0, 0) // UNIT, 0
            owed = step * (draw(seed, src, 0, 2) >> 32) // UNIT  # time on until the next message
            while now < self.duration:
                end = now + self.on * exponential(seed, src, burst, 1) // UNIT
                times = range(now + owed, end, step)
                out += [(t, src, (src + 1) % self.ranks, self.size) for t in times if t < self.duration]
                owed += len(times) * step - (end - now)
                burst += 1
                now = end + silent * exponential(seed, src, burst, 0) // UNIT
        return out
