"""Messages of one iteration, by whom they reached and when: how a collective came to its end on a rank."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from cosim.engine.records import JobInfo, MessageRecords
from cosim.results.one_iteration import I64, UNKNOWN, OneIteration, Place


class Hop(NamedTuple):
    """A message of endpoint ``src`` to ``dst``, or (src == dst) what an endpoint did between two of them."""

    src: int
    dst: int
    start_ps: int
    end_ps: int


class Hops:
    """The messages of one iteration of a job.

    Parameters
    ----------
    messages
        Of the run.
    rows
        Of the iteration, among them.
    info
        Of the job.
    """

    def __init__(self, messages: MessageRecords, rows: I64, info: JobInfo) -> None:
        columns = (messages.op, messages.src, messages.dst, messages.start_ps, messages.end_ps)
        op, src, dst, start, end = (column[rows] for column in columns)
        order = np.lexsort((end, dst, op))
        self._src, self._start, self._end = src[order], start[order], end[order]
        self._info = info
        keys = (op[order].astype(np.int64) << 32) | dst[order]
        found, first = np.unique(keys, return_index=True)
        last = np.append(first, len(keys))[1:].tolist()
        self._rows = {
            (key >> 32, key & 0xFFFFFFFF): (a, b)
            for key, a, b in zip(found.tolist(), first.tolist(), last, strict=True)
        }

    def left_at(self, place: Place, end_ps: int) -> int:
        """When the message of a send left, which arrived at ``end_ps``; -1 where there is none."""
        rank, op = place
        here = int(self._info.endpoints[rank])
        for (number, _), (first, last) in self._rows.items():
            if number == op:
                at = first + int(np.searchsorted(self._end[first:last], end_ps))
                if at < last and self._end[at] == end_ps and self._src[at] == here:
                    return int(self._start[at])
        return -1

    def back(self, it: OneIteration, place: Place) -> tuple[list[Hop], Place]:
        """Messages of a collective, the last first, from its end on a rank back to the member whose arrival
        began them; and that member's operation.

        A message left when something ended at its source: another message, or the wait for the rank itself.
        Where nothing did at that very instant (a reduction takes time), the last thing before it counts.
        Of several at one instant the first in the order of endpoints does.
        """
        members = it.members(place)
        number = min(members)[1]
        at = {int(self._info.endpoints[rank]): (rank, op) for rank, op in members}
        here, time = int(self._info.endpoints[place[0]]), it.ended(place)
        hops: list[Hop] = []
        seen: set[int] = set()
        while True:
            came = it.began(at[here])
            row = self._last(number, here, time, at, seen)
            if row < 0 or (came <= time and came >= self._end[row]):
                if UNKNOWN < came < time:
                    hops.append(Hop(here, here, came, time))
                return hops, at[here]
            seen.add(row)
            start, end, src = int(self._start[row]), int(self._end[row]), int(self._src[row])
            if end < time:
                hops.append(Hop(here, here, end, time))
            hops.append(Hop(src, here, start, end))
            here, time = src, start

    def _last(self, number: int, dst: int, time: int, of: Mapping[int, Place], seen: set[int]) -> int:
        """The last message of a collective that had reached an endpoint by then; -1: none had."""
        first, last = self._rows.get((number, dst), (0, 0))
        row = first + int(np.searchsorted(self._end[first:last], time, side="right")) - 1
        while row >= first and (row in seen or int(self._src[row]) not in of):
            row -= 1
        return row if row >= first else -1
