"""Queues and rates over time: what a network is asked for at fixed instants, beside a run and without any
effect on it.

An instant is looked at when it begins: what ends in it has ended, nothing that follows from that has begun.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cosim.engine.engine import held_signals
from cosim.engine.records import I64, Series
from cosim.network.simulator import NetworkSimulator, QueueSample
from cosim.units import NEVER

MOST_SAMPLES = 4096  # of each series: more than a plot has columns
_LEAST_SAMPLES = 256  # fewer would hide what was asked for: then it is refused
_CELLS = 1 << 20  # of all series together
MOST_SERIES = _CELLS // _LEAST_SAMPLES
_RATES = 4  # a second, bytes of windows, marked, connections


@dataclass(frozen=True, eq=False)
class Watched:
    """What is looked at: ``links`` by number; the sums of ``jobs`` by number, and of ``pairs``, int64[k, 2]
    of endpoints; as ``names`` call them. Every ``every_ps``.
    """

    every_ps: int
    links: I64
    jobs: I64
    pairs: I64
    names: tuple[str, ...]

    @property
    def num_series(self) -> int:
        """How many lines there will be."""
        return len(self.links) + len(self.names)


class SeriesLog:
    """Takes samples; where there are too many for its room, every second one goes, and it takes half as many
    from then on: memory is the same however long a run is.
    """

    def __init__(self, watched: Watched, network: NetworkSimulator, endpoints: int) -> None:
        self._watched = watched
        self._network = network
        self._endpoints = endpoints
        self._every = watched.every_ps
        room = min(MOST_SAMPLES, _CELLS // max(watched.num_series, 1))
        self._room = room - room % 2
        self._used = 0
        self._at = np.zeros(self._room, np.int64)
        self._queues = np.zeros((self._room, len(QueueSample._fields), len(watched.links)))
        self._rates = np.zeros((self._room, _RATES, len(watched.names)))
        keys = watched.pairs[:, 0] * endpoints + watched.pairs[:, 1]
        self._order = np.argsort(keys)
        self._keys = keys[self._order]
        self.due_ps = 0

    def take(self, now: int) -> None:
        """Look at the instant ``now``, which is due."""
        # Its room is even: what is due after the last that stays is this one.
        if self._used == self._room:
            with held_signals():
                self._thin_out()
        row = self._used
        self._at[row] = now
        if len(self._watched.links):
            self._queues[row] = self._network.queues(self._watched.links, now)
        if self._watched.names:
            self._add_rates(row)
        self._used += 1
        self.due_ps = min(now + self._every, NEVER)

    def has_work(self) -> bool:
        """Whether the network has something to do yet."""
        return self._network.has_work()

    def _thin_out(self) -> None:
        kept = self._used // 2
        for column in (self._at, self._queues, self._rates):
            column[:kept] = column[: self._used : 2].copy()
            column[kept:] = 0
        self._used = kept
        self._every *= 2

    def _add_rates(self, row: int) -> None:
        found = self._network.rates()
        what = np.stack([found.rate_bps, found.window_bytes, found.marked, np.ones(len(found.job))])
        jobs = len(self._watched.jobs)
        for place, job in enumerate(self._watched.jobs.tolist()):
            self._rates[row, :, place] = what[:, found.job == job].sum(axis=1)
        if len(self._keys):
            key = found.src.astype(np.int64) * self._endpoints + found.dst
            at = np.minimum(np.searchsorted(self._keys, key), len(self._keys) - 1)
            mine = self._keys[at] == key
            for k in range(_RATES):
                np.add.at(self._rates[row, k], jobs + self._order[at[mine]], what[k, mine])

    def series(self, end_ps: int) -> Series:
        """What was seen up to ``end_ps``; pairs that never sent are left out."""
        used = int(np.searchsorted(self._at[: self._used], end_ps, side="right"))
        rates = self._rates[:used]
        connections = rates[:, 3]
        kept = connections.sum(axis=0) + (np.arange(connections.shape[1]) < len(self._watched.jobs)) > 0
        marked = rates[:, 2] / np.maximum(connections, 1)
        return Series(
            asked_ps=self._watched.every_ps,
            every_ps=self._every,
            at_ps=self._at[:used].copy(),
            links=self._watched.links,
            queues=QueueSample(*(self._queues[:used, k].copy() for k in range(len(QueueSample._fields)))),
            names=tuple(name for name, keep in zip(self._watched.names, kept.tolist(), strict=True) if keep),
            rate_bps=rates[:, 0][:, kept],
            window_bytes=rates[:, 1][:, kept],
            marked=marked[:, kept],
            connections=connections[:, kept].astype(np.int64),
        )
