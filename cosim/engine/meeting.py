"""A meeting: one collective operation of one group, from its first rank's arrival to its last one's end."""

from __future__ import annotations

from dataclasses import dataclass, field

from cosim.engine.collective import CollectiveRun
from cosim.engine.programs import Group
from cosim.engine.rank import Rank
from cosim.errors import AlgorithmError, MismatchError
from cosim.pattern.plan import Plan
from cosim.units import format_size
from cosim.workload.program import Operation


@dataclass(eq=False)
class Meeting:
    """Checks that the ranks of a group mean the same collective, and remembers who came when."""

    group: Group
    operation: Operation
    op: int
    first: Rank
    iteration: int
    start_ps: int
    ready_ps: int = -1
    run: CollectiveRun | None = None
    plan: Plan | None = None
    """Of the whole group; ``run`` has the part of it that is simulated."""
    ranks: dict[int, tuple[Rank, int]] = field(default_factory=dict)
    arrived: set[int] = field(default_factory=set)
    left: set[int] = field(default_factory=set)

    @property
    def title(self) -> str:
        """``all_reduce 'grads', 64 MiB (iteration 0)``."""
        operation = self.operation
        return (
            f"{operation.collective} {operation.name!r}, {format_size(operation.size_bytes)} "
            f"(iteration {self.iteration})"
        )

    def arrive(self, rank: Rank, op: int, now: int) -> None:
        """A rank starts its part.

        Raises
        ------
        MismatchError
            It means another collective, size or root than the first one did.
        """
        theirs, mine = self.operation, rank.program.operations[op]
        said = (mine.collective, mine.size_bytes, mine.root)
        if said != (theirs.collective, theirs.size_bytes, theirs.root):
            raise MismatchError(
                f"ranks disagree on collective number {rank.program.occurrence[op]} of iteration "
                f"{rank.iteration} of their group {_short(self.group.ranks)}:\n"
                f"  rank {self.first.number}: op {self.op} {theirs.name!r}: {theirs.collective} of "
                f"{theirs.size_bytes} bytes, root {theirs.root}\n"
                f"  rank {rank.number}: op {op} {mine.name!r}: {mine.collective} of "
                f"{mine.size_bytes} bytes, root {mine.root}"
            )
        self.arrived.add(rank.number)
        self.ranks[rank.number] = (rank, op)
        if len(self.arrived) == len(self.group.ranks):
            self.ready_ps = now

    def leave(self, position: int) -> tuple[Rank, int]:
        """A rank, by its position in the group, is done; which one, and its operation.

        Raises
        ------
        AlgorithmError
            It has not come yet.
        """
        number = self.group.ranks[position]
        if number not in self.arrived:
            raise AlgorithmError(
                f"rank {number} is done with {self.title} before it came: the algorithm that carries it "
                "must let each rank's exit wait for its entry"
            )
        self.left.add(number)
        return self.ranks[number]


def _short(ranks: tuple[int, ...]) -> str:
    if len(ranks) <= 8:
        return str(list(ranks))
    return f"[{ranks[0]}, {ranks[1]}, ... {ranks[-1]}] of {len(ranks)}"
