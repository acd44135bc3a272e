"""Operations of programs as columns: what is made of them costs per column, not per operation."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import cached_property
from typing import overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cosim.errors import WorkloadError
from cosim.workload.operation import Operation, OpKind, Peer, Program

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
_CODE = {kind.value: code for code, kind in enumerate(OpKind)}


class OperationTable:
    """The operations of several programs, one after the other, a row each: as few *prototypes*, with a column
    for what differs between rows that are like the same one. A column that isn't given is as the prototypes
    have it.

    Parameters
    ----------
    prototypes
        Operations that rows are like.
    like
        int32[rows]: position in ``prototypes``.
    first
        int64[programs + 1]: program p has the rows from ``first[p]`` up to ``first[p + 1]``. None: one
        program has all.
    names, name
        Texts, and int32[rows]: position in them.
    duration_ps, size_bytes, tag
        int64[rows].
    peer
        int64[rows]: the rank at the other end; -1: as the prototype says.
    deps
        (int64[rows + 1], int32[all dependencies]): row k waits for those from ``deps[0][k]`` up to
        ``deps[0][k + 1]``, numbers within its program.
    lagged
        int64[lagged dependencies, 3]: a row, the number within its program of what it waits for, and how many
        iterations before, by rows.

    Raises
    ------
    WorkloadError
        Columns of unequal length, or a position beyond what it is in.

    Examples
    --------
    >>> import numpy as np
    >>> import cosim
    >>> send = cosim.Operation("send", cosim.OpKind.SEND, stream="")
    >>> receive = cosim.Operation("receive", cosim.OpKind.RECV, stream="")
    >>> table = cosim.OperationTable(
    ...     [send, receive], like=[0, 0, 1, 1], first=[0, 2, 4],
    ...     peer=[1, 1, 0, 0], tag=[0, 1, 0, 1], size_bytes=[10, 20, 10, 20],
    ... )
    >>> [operation.size_bytes for operation in table.programs()[1].operations]
    [10, 20]
    """

    def __init__(
        self,
        prototypes: Sequence[Operation],
        like: ArrayLike,
        *,
        first: ArrayLike | None = None,
        names: Sequence[str] | None = None,
        name: ArrayLike | None = None,
        duration_ps: ArrayLike | None = None,
        size_bytes: ArrayLike | None = None,
        peer: ArrayLike | None = None,
        tag: ArrayLike | None = None,
        deps: tuple[ArrayLike, ArrayLike] | None = None,
        lagged: ArrayLike | None = None,
    ) -> None:
        self.prototypes = tuple(prototypes)
        self.like: I32 = np.asarray(like, np.int32)
        rows = len(self.like)
        self.first: I64 = np.asarray([0, rows] if first is None else first, np.int64)
        _check_places("like", self.like, len(self.prototypes))
        _check_steps("first", self.first, rows)

        if name is None:
            names, name = [one.name for one in self.prototypes], self.like
        self.names: Sequence[str] = names if names is not None else ()
        self.name: I32 = self._column("name", name, ()).astype(np.int32)
        _check_places("name", self.name, len(self.names))
        of = self.prototypes
        self.duration_ps: I64 = self._column("duration_ps", duration_ps, [one.duration_ps for one in of])
        self.size_bytes: I64 = self._column("size_bytes", size_bytes, [one.size_bytes for one in of])
        self.tag: I64 = self._column("tag", tag, [one.tag for one in of])
        self.peer: I64 = self._column("peer", peer, [_rank(one.peer) for one in of])
        self.dep_first: I64
        self.dep: I32
        if deps is None:
            lengths = np.array([len(one.deps) for one in of], np.int64)[self.like]
            every = [other for at in self.like.tolist() for other in of[at].deps] if lengths.any() else []
            deps = np.concatenate([[0], np.cumsum(lengths)]), every
        self.dep_first, self.dep = np.asarray(deps[0], np.int64), np.asarray(deps[1], np.int32)
        _check_steps("deps", self.dep_first, len(self.dep), rows + 1)
        if lagged is None:
            late = [bool(one.lagged) for one in of]
            which = np.flatnonzero(np.array(late)[self.like]).tolist() if any(late) else ()
            lagged = [(row, other, lag) for row in which for other, lag in of[self.like[row]].lagged]
        self.lagged: I64 = np.asarray(lagged, np.int64).reshape(-1, 3)

    def _column(self, what: str, given: ArrayLike | None, of: Sequence[int]) -> I64:
        """What is given for each row, or else its prototype's."""
        try:
            made = np.array(of, np.int64)[self.like] if given is None else np.asarray(given, np.int64)
        except OverflowError:
            raise WorkloadError(f"operation table: a {what} is beyond 64 bits") from None
        if made.shape != self.like.shape:
            raise WorkloadError(f"operation table: {what} has {len(made)} rows, like has {len(self.like)}")
        return made

    def __len__(self) -> int:
        return len(self.like)

    @property
    def longest_lag(self) -> int:
        """The most iterations that any operation looks back; 0: none does."""
        return int(self.lagged[:, 2].max(initial=0))

    @property
    def num_programs(self) -> int:
        """How many programs there are."""
        return len(self.first) - 1

    @cached_property
    def kind(self) -> NDArray[np.int8]:
        """int8[rows]: position in :class:`OpKind`."""
        # An Enum yields its value through Python code; its _value_ is a plain attribute.
        return np.array([_CODE[one.kind._value_] for one in self.prototypes], np.int8)[self.like]

    def is_kind(self, *kinds: OpKind) -> NDArray[np.bool_]:
        """bool[rows]: of these kinds."""
        return np.array([one.kind in kinds for one in self.prototypes], np.bool_)[self.like]

    @cached_property
    def flops(self) -> NDArray[np.float64]:
        """float64[rows]: that each computes; 0: none, or not known."""
        return np.array([one.flops for one in self.prototypes], np.float64)[self.like]

    @cached_property
    def is_access(self) -> NDArray[np.bool_]:
        """bool[rows]: loads and stores of remote memory."""
        return np.array([one.access != "" for one in self.prototypes], np.bool_)[self.like]

    @cached_property
    def program(self) -> I32:
        """int32[rows]: the number of each row's program."""
        return np.repeat(np.arange(self.num_programs, dtype=np.int32), np.diff(self.first))

    @cached_property
    def streams(self) -> tuple[str, ...]:
        """Names of streams, as prototypes have them first."""
        return tuple(dict.fromkeys(one.stream for one in self.prototypes))

    @cached_property
    def stream(self) -> I32:
        """int32[rows]: position in :attr:`streams`."""
        number = {name: k for k, name in enumerate(self.streams)}
        return np.array([number[one.stream] for one in self.prototypes], np.int32)[self.like]

    def operations(self, program: int) -> tuple[Operation, ...]:
        """The operations of one program."""
        rows = slice(*self.first[program : program + 2].tolist())
        ends = self.dep_first[rows.start : rows.stop + 1].tolist()
        columns = (self.like, self.name, self.duration_ps, self.size_bytes, self.peer, self.tag)
        mine = self.lagged[slice(*np.searchsorted(self.lagged[:, 0], (rows.start, rows.stop)).tolist())]
        late: dict[int, list[tuple[int, int]]] = {}
        for row, other, lag in mine.tolist():
            late.setdefault(row - rows.start, []).append((other, lag))
        made = []
        for row, (like, name, duration, size, peer, tag) in enumerate(
            zip(*(column[rows].tolist() for column in columns), strict=True)
        ):
            of = self.prototypes[like]
            made.append(
                Operation(
                    self.names[name],
                    of.kind,
                    of.stream,
                    tuple(self.dep[ends[row] : ends[row + 1]].tolist()),
                    duration,
                    of.flops,
                    of.bytes_moved,
                    of.collective,
                    of.axes,
                    of.ranks,
                    size,
                    of.root,
                    of.peer if peer < 0 else Peer(rank=peer),
                    tag,
                    of.channel,
                    of.phase,
                    tuple(late.get(row, ())),
                    of.access,
                    of.ahead,
                )
            )
        return tuple(made)

    def taking(self, duration_ps: I64) -> OperationTable:
        """The same operations with other durations, int64[rows]."""
        made = copy(self)
        made.duration_ps = duration_ps
        return made

    def programs(self, names: Sequence[str] | None = None) -> TablePrograms:
        """The table's programs, for :class:`cosim.Workload`; named ``program 0`` and so on by default."""
        if names is None:
            names = [f"program {number}" for number in range(self.num_programs)]
        return TablePrograms(self, names)

    @classmethod
    def of(cls, programs: Sequence[Program]) -> OperationTable:
        """A table in which every operation is its own prototype."""
        every = [operation for program in programs for operation in program.operations]
        lengths = [len(program.operations) for program in programs]
        return cls(every, np.arange(len(every)), first=np.concatenate([[0], np.cumsum(lengths)]))


class TablePrograms(Sequence[Program]):
    """Programs of a table, made when they are asked for."""

    def __init__(self, table: OperationTable, names: Sequence[str]) -> None:
        self.table = table
        self.names = names

    def __len__(self) -> int:
        return self.table.num_programs

    @overload
    def __getitem__(self, number: int) -> Program: ...
    @overload
    def __getitem__(self, number: slice) -> tuple[Program, ...]: ...
    def __getitem__(self, number: int | slice) -> Program | tuple[Program, ...]:
        if isinstance(number, slice):
            return tuple(self[k] for k in range(*number.indices(len(self))))
        number = range(len(self))[number]
        if number not in self._made:
            self._made[number] = Program(self.names[number], self.table.operations(number))
        return self._made[number]

    @cached_property
    def _made(self) -> dict[int, Program]:
        return {}


def table_of(programs: Sequence[Program]) -> OperationTable:
    """The operations of programs as columns: their own table where they come from one."""
    return programs.table if isinstance(programs, TablePrograms) else OperationTable.of(programs)


def _rank(peer: Peer | None) -> int:
    return -1 if peer is None or peer.rank is None else peer.rank


def _check_places(what: str, places: I32, count: int) -> None:
    if len(places) and not 0 <= places.min() <= places.max() < count:
        row = int(((places < 0) | (places >= count)).argmax())
        raise WorkloadError(f"operation table: {what}[{row}] is {places[row]}; there are {count}, from 0")


def _check_steps(what: str, steps: I64, end: int, length: int | None = None) -> None:
    right = len(steps) == (length or len(steps)) and len(steps) > 0
    if not right or steps[0] != 0 or steps[-1] != end or (steps[1:] < steps[:-1]).any():
        raise WorkloadError(
            f"operation table: {what} should ascend from 0 to {end}"
            f"{f' in {length} numbers' if length else ''}, but is {steps[:8].tolist()}"
        )
