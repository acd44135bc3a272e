"""Chains: operations of a program that follow one another at once, whatever happens around them.

Computation, all-reduce, computation, all-reduce ...: where an operation waits for the one before and for
nothing else that could end later, and nothing else can hold its stream, it starts at the picosecond at which
that one ends. Such a chain, with its collectives on one group whose ranks all run this program, is given to
the network whole, computations being delays between collectives, and goes there without the engine.

So a chain's operation has to be alone in what it waits for (all its dependencies are known to have ended when
the one before it in the chain ends), in being waited for (what else waits for one of its operations waits for
the next one too), and in its stream (any two operations of it are known to come one after the other). What is
known comes from dependencies that point back, by way of streams whose operations all follow one another; so
some chains are not found, and go operation by operation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from cosim.engine.programs import Naming, ReadyProgram
from cosim.workload.program import OpKind

MOST = 256
"""Operations of a chain: longer ones are cut, so that their tables stay small and serve more often."""

_CHAINABLE = (OpKind.COMPUTE, OpKind.MEMORY, OpKind.COLLECTIVE)


@dataclass(frozen=True, eq=False)
class Chain:
    """Operations, by number; one at least is a collective. All collectives are on the same group.

    ``alike`` is of the program: for each operation the first that does the same.
    """

    program: ReadyProgram
    operations: tuple[int, ...]
    alike: Sequence[int]

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Equal for chains of a program that differ in their place only."""
        first = self.operations[0]
        behind = (op - first for op in self.operations)
        return (*behind, *(self.alike[op] for op in self.operations))

    @cached_property
    def collectives(self) -> tuple[int, ...]:
        """Those of the operations that are collectives."""
        all_of = self.program.operations
        return tuple(op for op in self.operations if all_of[op].kind is OpKind.COLLECTIVE)

    @property
    def names(self) -> Iterator[str]:
        """Of its collectives."""
        return (self.program.operations[op].name for op in self.collectives)

    @property
    def naming(self) -> Naming:
        """The group of its collectives."""
        return self.program.naming[self.collectives[-1]]

    @cached_property
    def delays(self) -> tuple[int, ...]:
        """Picoseconds of computation before each collective, and after the last."""
        found, delay = [], 0
        for op in self.operations:
            operation = self.program.operations[op]
            if operation.kind is OpKind.COLLECTIVE:
                found.append(delay)
                delay = 0
            else:
                delay += operation.duration_ps
        return (*found, delay)

    def halves(self) -> Iterator[Chain]:
        """The same in two, the first ending with a collective; none where there is only one."""
        half = len(self.collectives) // 2
        if half:
            middle = self.operations.index(self.collectives[half - 1]) + 1
            for part in (self.operations[:middle], self.operations[middle:]):
                yield Chain(self.program, part, self.alike)

    @cached_property
    def outside(self) -> tuple[tuple[int, int], ...]:
        """(Operation, how often): what else waits for operations of the chain other than the last."""
        own = set(self.operations)
        counts = Counter(
            successor
            for op in self.operations[:-1]
            for successor in self.program.successors[op]
            if successor not in own
        )
        return tuple(sorted(counts.items()))


def find_chains(program: ReadyProgram) -> dict[int, Chain]:
    """Chains by their first operation."""
    if any(dep > op for op, one in enumerate(program.operations) for dep in one.deps):
        return {}
    follows, alike = _Order(program), _alike(program)
    chains, taken = {}, set[int]()
    for first, operation in enumerate(program.operations):
        if first in taken or operation.kind not in _CHAINABLE or not follows.alone_in_stream(first):
            continue
        members: list[int] = []
        names: set[Naming] = set()
        after: int | None = first
        while after is not None and len(members) < MOST:
            if program.operations[after].kind is OpKind.COLLECTIVE:
                names.add(program.naming[after])
            if len(names) > 1:
                break
            members.append(after)
            after = follows.next_of(after)
        taken.update(members)
        if names and len(members) > 1:
            chains[first] = Chain(program, tuple(members), alike)
    return chains


def _alike(program: ReadyProgram) -> list[int]:
    first: dict[tuple[object, ...], int] = {}
    return [
        first.setdefault((o.kind, o.collective, o.size_bytes, o.root, o.duration_ps, o.axes, o.ranks), op)
        for op, o in enumerate(program.operations)
    ]


class _Order:
    """What is known to come before what, by dependencies that point back."""

    def __init__(self, program: ReadyProgram) -> None:
        self._program = program
        operations = program.operations
        used = sorted(
            {program.stream[op] for op, one in enumerate(operations) if one.kind in _CHAINABLE} - {-1}
        )
        self._place = {stream: place for place, stream in enumerate(used)}
        nothing = [-1] * len(used)
        self._before: list[list[int]] = []
        """Of each operation, the last one of each stream known to precede it."""
        last = list(nothing)
        self._ordered = [True] * len(used)
        for op, one in enumerate(operations):
            mine = nothing
            for dep in one.deps:
                theirs = self._before[dep]
                place = self._place.get(program.stream[dep])
                if place is not None and mine[place] < dep:
                    mine = list(mine)
                    mine[place] = dep
                if theirs is not mine and any(map(int.__gt__, theirs, mine)):
                    mine = list(map(max, mine, theirs))
            self._before.append(mine)
            place = self._place.get(program.stream[op])
            if place is not None:
                self._ordered[place] &= last[place] == mine[place]
                last[place] = op

    def _precedes(self, one: int, other: int) -> bool:
        """Whether it is known that one has ended when the other starts."""
        place = self._place.get(self._program.stream[one])
        return place is not None and self._ordered[place] and self._before[other][place] >= one

    def alone_in_stream(self, op: int) -> bool:
        """Whether nothing can hold an operation's stream when it is ready."""
        stream = self._program.stream[op]
        return stream < 0 or self._ordered[self._place[stream]]

    def next_of(self, op: int) -> int | None:
        """The operation that starts when this one ends, if it is the next of a chain."""
        successors = self._program.successors[op]
        if not successors:
            return None
        after = min(successors)
        one = self._program.operations[after]
        if one.kind not in _CHAINABLE or not self.alone_in_stream(after):
            return None
        if any(dep != op and not self._precedes(dep, op) for dep in one.deps):
            return None
        if any(other != after and not self._precedes(after, other) for other in successors):
            return None
        return after


def positions(chain: Chain) -> Iterator[tuple[int, int, int, int]]:
    """Of each operation (start row, start delay, end row, end delay).

    Row 0 is when the rank came, row j + 1 when collective j of the chain ended on it; delays are in ps.
    """
    row, delay = 0, 0
    for op in chain.operations:
        operation = chain.program.operations[op]
        if operation.kind is OpKind.COLLECTIVE:
            yield row, delay, row + 1, 0
            row, delay = row + 1, 0
        else:
            yield row, delay, row, delay + operation.duration_ps
            delay += operation.duration_ps
