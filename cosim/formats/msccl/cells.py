"""Where the chunks of a plan lie in MSCCL's buffers, phase after phase.

A *cell* is the smallest chunk that any phase moves. A rank's *region* is what it works on in a phase, as
cells in order: a reduce-scatter leaves it a part, an all-gather brings the parts of its group together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from cosim.errors import AlgorithmError
from cosim.formats.msccl.program import Place
from cosim.pattern.plan import Phase, Plan
from cosim.pattern.template import Collective


def count_cells(phases: Sequence[Phase], collective: Collective, num_ranks: int) -> int:
    """The least number of cells of the whole buffer that every phase's chunks are whole numbers of."""
    held = Fraction(1, num_ranks) if collective is Collective.ALL_GATHER else Fraction(1)
    parts = [1, num_ranks if collective in (Collective.ALL_GATHER, Collective.REDUCE_SCATTER) else 1]
    for phase in phases:
        t = phase.template
        share = Fraction(t.num_ranks, t.num_chunks)
        if t.collective is Collective.ALL_GATHER:
            parts.append((held * share).denominator)
            held *= t.num_ranks
        else:
            parts.append((held / t.num_chunks).denominator)
            if t.collective is Collective.REDUCE_SCATTER:
                held /= t.num_ranks
    return math.lcm(*parts)


class Regions:
    """Each rank's region, as phases go by."""

    def __init__(self, plan: Plan, phases: Sequence[Phase]) -> None:
        n = plan.num_ranks
        self.total = count_cells(phases, plan.collective, n)
        everything = tuple(range(self.total))
        share = self.total // n
        self.of: list[tuple[int, ...]] = [
            everything[rank * share : (rank + 1) * share]
            if plan.collective is Collective.ALL_GATHER
            else everything
            for rank in range(n)
        ]

    def enter(self, phase: Phase, members: Sequence[int]) -> list[tuple[int, ...]]:
        """The cells of each of the template's chunks in a sub-group; its regions are then as after it."""
        t = phase.template
        owner = t.owner.tolist()
        if t.collective is Collective.ALL_GATHER:
            mine: dict[int, int] = {}
            cells = []
            for chunk in range(t.num_chunks):
                region = self.of[members[owner[chunk]]]
                size = len(region) * t.num_ranks // t.num_chunks
                first = mine.get(owner[chunk], 0)
                mine[owner[chunk]] = first + size
                cells.append(region[first : first + size])
            together = tuple(sorted(cell for part in cells for cell in part))
            for member in members:
                self.of[member] = together
            return cells
        region = self.of[members[0]]
        if any(self.of[member] != region for member in members):
            raise AlgorithmError("a group whose ranks hold different parts can't reduce")
        size = len(region) // t.num_chunks
        cells = [region[chunk * size : (chunk + 1) * size] for chunk in range(t.num_chunks)]
        if t.collective is Collective.REDUCE_SCATTER:
            for place, member in enumerate(members):
                self.of[member] = tuple(
                    cell for chunk in range(t.num_chunks) if owner[chunk] == place for cell in cells[chunk]
                )
        return cells


class Places:
    """Buffer and chunk of each cell at each rank; one for each plan."""

    def __init__(self, plan: Plan, regions: Regions, owner: Sequence[int]) -> None:
        n = plan.num_ranks
        self.collective, self.num_chunks = plan.collective, regions.total
        self.scratch: list[dict[int, int]] = [{} for _ in range(n)]
        self._number = list(range(regions.total))
        if plan.collective is Collective.REDUCE_SCATTER:
            cells = [cell for region in regions.of for cell in region]
            for number, cell in enumerate(cells):
                self._number[cell] = number
        if plan.collective is Collective.ALL_TO_ALL:
            self.per_rank = regions.total // n
            self._owner = owner
            counted: dict[tuple[int, int], int] = {}
            for cell in range(regions.total):
                pair = (cell // self.per_rank, owner[cell])
                self._number[cell] = counted.get(pair, 0)
                counted[pair] = self._number[cell] + 1
            self.share = self.per_rank // n
            if any(count != self.share for count in counted.values()):
                raise AlgorithmError("pieces of unequal size")
            self.num_chunks = self.per_rank

    def __call__(self, rank: int, cell: int) -> Place:
        """Where a rank keeps a cell; scratch is handed out as it is needed."""
        number = self._number[cell]
        if self.collective is Collective.ALL_GATHER:
            return "o", number
        if self.collective is not Collective.ALL_TO_ALL:
            return "i", number
        source, target = cell // self.per_rank, self._owner[cell]
        if rank == source:
            return "i", target * self.share + number
        if rank == target:
            return "o", source * self.share + number
        kept = self.scratch[rank]
        return "s", kept.setdefault(cell, len(kept))

    def buffers(self, rank: int) -> tuple[int, int, int]:
        """Chunks of the input, output and scratch buffers, as MSCCL's compiler declares them."""
        if self.collective is Collective.ALL_GATHER:
            return 0, self.num_chunks, 0
        if self.collective is Collective.ALL_TO_ALL:
            return self.num_chunks, self.num_chunks, len(self.scratch[rank])
        return self.num_chunks, 0, 0
