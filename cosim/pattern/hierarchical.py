"""Over dimensions: an operation as phases, one dimension after another, as ASTRA-sim's ``Sys.cc`` forms them.

``local_bw_aware`` all-reduce: reduce-scatter in every dimension but the last, ascending, what is left
shrinking; all-reduce in the last; all-gather back, descending. ``baseline``: an all-reduce of everything in
each dimension. Reduce-scatter: ascending, shrinking; all-gather: descending, growing; all-to-all: ascending,
everything in each dimension. Dimensions of one rank are skipped. One dimension is the case of a flat
algorithm.

Each dimension has its own queues. All-reduce phases under ``local_bw_aware`` take the first half of them on
the way in and run clockwise, the second half on the way back and run anticlockwise; other phases go round
all queues, the upper half anticlockwise (``QueueLevelHandler.cc``). ASTRA-sim goes round on from operation
to operation; here every operation begins with the first queue.

Why the phases add up to the collective, given that each phase does what it promises in its sub-groups: after
reduce-scatter in dimensions 0..d a rank has, for the piece that its first d + 1 coordinates name, the sum
over all ranks that differ from it in those only; an all-reduce of that piece over the last dimension makes
it the sum over all, equal for all ranks that share the first coordinates; each all-gather undoes one
division.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cosim.errors import AlgorithmError
from cosim.pattern.costs import Costs
from cosim.pattern.plan import FIRST, Turn
from cosim.pattern.template import I32, Collective


@dataclass(frozen=True, slots=True)
class DimensionPhase:
    """A phase before its template: ``collective`` of ``size_bytes`` in dimension ``dim``."""

    collective: Collective
    dim: int
    size_bytes: int
    queue: int
    reverse: bool


class Queues:
    """Hands out the queues of each dimension, ``count`` of them in each, from ``turn`` on."""

    def __init__(self, num_dims: int, count: int, turn: Turn = FIRST) -> None:
        self.num_dims, self.count = num_dims, count
        self._begin = (0, 0, count // 2)
        places = [*turn.queues, *[self._begin] * (num_dims - len(turn.queues))]
        self._next, self._first, self._last = (list(place) for place in zip(*places, strict=True))

    def places(self) -> tuple[tuple[int, int, int], ...]:
        """The next queues of each dimension, for the next turn."""
        found = list(zip(self._next, self._first, self._last, strict=True))
        while found and found[-1] == self._begin:
            found.pop()
        return tuple(found)

    def any(self, dim: int) -> tuple[int, bool]:
        """The next of all queues, and whether it runs anticlockwise."""
        at = self._next[dim]
        self._next[dim] = (at + 1) % self.count
        return dim * self.count + at, self.count > 1 and at >= self.count // 2

    def first(self, dim: int) -> tuple[int, bool]:
        """The next of the first half."""
        at = self._first[dim]
        self._first[dim] = at + 1 if at + 1 < self.count // 2 else 0
        return dim * self.count + at, False

    def last(self, dim: int) -> tuple[int, bool]:
        """The next of the second half, which run anticlockwise."""
        at = self._last[dim]
        self._last[dim] = at + 1 if at + 1 < self.count else self.count // 2
        return dim * self.count + at, True


def chunk_sizes(
    collective: Collective, num_ranks: int, size_bytes: int, splits: int, costs: Costs
) -> list[int]:
    """Bytes of each chunk of an operation.

    Exact sizing: ``splits`` chunks that add up to ``size_bytes`` and differ by at most a byte (fewer, of one
    byte, where there are fewer bytes). Floor sizing is ASTRA-sim's: chunks of ``size_bytes // splits``, at
    least one byte a rank except for an all-gather, as many as it takes to cover ``size_bytes``; so a
    remainder makes one chunk more.

    Raises
    ------
    AlgorithmError
        Floor sizing of an all-gather would make chunks of nothing, with which ASTRA-sim never ends.
    """
    if not costs.floor:
        parts = max(1, min(splits, size_bytes))
        return [size_bytes * (i + 1) // parts - size_bytes * i // parts for i in range(parts)]
    chunk = size_bytes // splits
    if collective is not Collective.ALL_GATHER and chunk < num_ranks:
        return [num_ranks] * splits
    if chunk == 0:
        if size_bytes == 0:
            return [0]
        raise AlgorithmError(
            f"all_gather of {size_bytes} bytes can't be split into {splits} chunks, rounded down",
            hint=f"set collectives.splits to {size_bytes} or less, or collectives.sizing to exact",
        )
    return [chunk] * -(-size_bytes // chunk)


def phases(
    collective: Collective,
    dims: Sequence[int],
    size_bytes: int,
    queues: Queues,
    costs: Costs,
    *,
    baseline: bool,
) -> list[DimensionPhase]:
    """One chunk's phases, in order."""
    live = [dim for dim, size in enumerate(dims) if size > 1]
    if collective is Collective.ALL_REDUCE and not baseline:
        return _local_bw_aware(dims, live, size_bytes, queues, costs)
    steps = []
    for dim in reversed(live) if collective is Collective.ALL_GATHER else live:
        queue, reverse = queues.any(dim)
        steps.append(DimensionPhase(collective, dim, size_bytes, queue, reverse))
        if collective is Collective.REDUCE_SCATTER:
            size_bytes = costs.share(size_bytes, dims[dim])
        elif collective is Collective.ALL_GATHER:
            size_bytes *= dims[dim]
    return steps


def _local_bw_aware(
    dims: Sequence[int], live: list[int], size_bytes: int, queues: Queues, costs: Costs
) -> list[DimensionPhase]:
    steps, left = [], []
    for dim in live[:-1]:
        steps.append(DimensionPhase(Collective.REDUCE_SCATTER, dim, size_bytes, *queues.first(dim)))
        size_bytes = costs.share(size_bytes, dims[dim])
        left.append(size_bytes)
    if live:
        steps.append(DimensionPhase(Collective.ALL_REDUCE, live[-1], size_bytes, *queues.first(live[-1])))
    for dim in reversed(live[:-1]):
        # A rank gathers what it had scattered; integer division keeps ASTRA-sim's product instead.
        has = left.pop()
        size_bytes = size_bytes if costs.floor else has
        steps.append(DimensionPhase(Collective.ALL_GATHER, dim, size_bytes, *queues.last(dim)))
        size_bytes *= dims[dim]
    return steps


def sub_groups(dims: Sequence[int], dim: int) -> I32:
    """int32[G, P]: positions that differ in dimension ``dim`` only, ascending; dimension 0 varies fastest."""
    grid = np.arange(int(np.prod(dims, dtype=np.int64)), dtype=np.int32).reshape(tuple(reversed(dims)))
    lines = np.moveaxis(grid, len(dims) - 1 - dim, -1)
    return np.ascontiguousarray(lines.reshape(-1, dims[dim]))
