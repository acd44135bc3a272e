"""Programs made ready to run: who meets whom in collectives.

The n-th collective that a program has on a group, in operation order, meets the n-th that every other
member has on it, whatever the order in which they start, and however each names the group. Sends and receives
meet by (sender, receiver, tag) in the order in which they are posted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, overload

import numpy as np

from cosim.engine.program_columns import Slots, slots_of
from cosim.engine.records import JobInfo
from cosim.errors import WorkloadError
from cosim.network.flows import I32, I64
from cosim.pattern.template import Collective
from cosim.topology.graph import Topology
from cosim.workload.looked_up import once
from cosim.workload.program import NO_STREAM, DeviceMesh, Operation, OpKind, Program, Workload

if TYPE_CHECKING:
    from cosim.engine.folding.folding import Folding
    from cosim.engine.folding.template import Grid

Naming = tuple[str, ...] | tuple[int, ...]
"""A group as all its members name it: mesh axes longer than one, in mesh order, or other explicit ranks."""


@dataclass(frozen=True, eq=False, slots=True)
class ProgramCollectives:
    """The collectives of a program as columns.

    Collective k is operation ``at[k]``, of ``kind[k]``: one with the same size, root and group is
    ``kinds[kind]``. ``ref`` of a kind is the number in ``groups`` of what it names: the first collective that
    does, and the form that all members share.
    """

    at: I64
    occurrence: I64
    kind: I64
    kinds: tuple[Operation, ...]
    ref: I64
    groups: tuple[tuple[Operation, Naming], ...]


@dataclass(frozen=True, eq=False)
class ReadyProgram:
    """A program's operations with what is looked up of them.

    ``streams`` names the streams; ``stream[op]`` is -1 where there is no limit. ``naming[op]`` is a
    collective's group, ``occurrence[op]`` counts the collectives on it before; ``collective`` finds one by
    those two.
    """

    name: str
    operations: tuple[Operation, ...]
    streams: tuple[str, ...]
    stream: tuple[int, ...]
    naming: tuple[Naming, ...]
    occurrence: tuple[int, ...]
    collective: dict[tuple[Naming, int], int]

    @cached_property
    def waits(self) -> tuple[int, ...]:
        """How many operations each one waits for."""
        return tuple(len({*one.deps}) for one in self.operations)

    @cached_property
    def successors(self) -> tuple[tuple[int, ...], ...]:
        """What waits for each operation, ascending."""
        found: list[list[int]] = [[] for _ in self.operations]
        for at, one in enumerate(self.operations):
            for before in {*one.deps}:
                found[before].append(at)
        return tuple(map(tuple, found))

    @cached_property
    def collectives(self) -> ProgramCollectives:
        """Those among the operations."""
        at = [k for k, one in enumerate(self.operations) if one.kind is OpKind.COLLECTIVE]
        numbers: dict[object, int] = {}
        refs: dict[object, int] = {}
        kind, ref = list[int](), list[int]()
        kinds, groups = list[Operation](), list[tuple[Operation, Naming]]()
        for k in at:
            one = self.operations[k]
            said = one.axes, one.ranks
            number = numbers.setdefault((one.collective, one.size_bytes, one.root, said), len(numbers))
            kind.append(number)
            if number == len(kinds):
                kinds.append(one)
                ref.append(refs.setdefault(said, len(refs)))
                if len(refs) > len(groups):
                    groups.append((one, self.naming[k]))
        return ProgramCollectives(
            np.array(at, np.int64),
            np.array([self.occurrence[k] for k in at], np.int64),
            np.array(kind, np.int64),
            tuple(kinds),
            np.array(ref, np.int64),
            tuple(groups),
        )


def naming(operation: Operation, mesh: DeviceMesh) -> Naming:
    """A collective's group in the one form that all members share; ``()`` is a rank alone."""
    # Axes of one rank are left out, so that a group has one name whichever of them are said.
    wide = tuple(name for name, size in mesh.axes.items() if size > 1)
    if operation.ranks is None:
        return tuple(name for name in wide if name in operation.axes) if operation.axes else wide
    ranks = operation.ranks
    # What is wrong is left as it is: whoever looks the group up says what is wrong with it.
    if not ranks or not all(0 <= rank < mesh.world_size for rank in ranks):
        return ranks
    places = [mesh.coordinates(rank) for rank in (ranks[0], ranks[-1])]
    axes = tuple(name for name in wide if places[0][name] != places[1][name])
    # A grid along some axes, in ascending order, has its first and last rank in opposite corners.
    size = int(np.prod([mesh.axes[name] for name in axes], dtype=np.int64))
    if size != len(ranks) or (axes and mesh.group(ranks[0], axes) != ranks):
        return ranks
    return axes


def ready_program(
    program: Program, mesh: DeviceMesh, known: dict[tuple[object, object], Naming]
) -> ReadyProgram:
    """A program made ready. ``known`` keeps namings for other programs of the job."""
    seen: dict[Naming, int] = {}
    collective: dict[tuple[Naming, int], int] = {}
    names: list[Naming] = []
    occurrence = []
    for at, operation in enumerate(program.operations):
        name: Naming = ()
        if operation.kind is OpKind.COLLECTIVE:
            said = (operation.axes, operation.ranks)
            if said not in known:
                known[said] = naming(operation, mesh)
            name = known[said]
        names.append(name)
        occurrence.append(seen.get(name, 0))
        if operation.kind is OpKind.COLLECTIVE:
            collective[name, occurrence[at]] = at
            seen[name] = occurrence[at] + 1
    streams = sorted({operation.stream for operation in program.operations} - {NO_STREAM})
    stream = {name: k for k, name in enumerate(streams)}
    return ReadyProgram(
        program.name,
        program.operations,
        tuple(streams),
        tuple(stream.get(operation.stream, -1) for operation in program.operations),
        tuple(names),
        tuple(occurrence),
        collective,
    )


@dataclass(frozen=True, eq=False, slots=True)
class Group:
    """A process group: ranks of the job in group order, where they sit, and their grid, if they form one.

    In a folded job ``ranks`` are the representatives, while ``members`` are the ranks of the whole job,
    and ``endpoints`` theirs, representatives first; ``grid`` is how members lie where there are more.
    """

    ranks: tuple[int, ...]
    position: dict[int, int]
    endpoints: I32
    dims: tuple[int, ...] | None
    members: tuple[int, ...]
    grid: Grid | None = None


def grid_dims(endpoints: I32, dims: tuple[int, ...]) -> tuple[int, ...] | None:
    """Sizes per topology dimension where ``endpoints`` are a full sub-grid, dimension 0 fastest, else None.

    Dimensions that the group doesn't extend along have size 1. Along each they may come in any order: hosts
    are a group's hosts whatever their numbers.
    """
    if len(dims) < 2:
        return None
    sizes, grid = [], np.zeros(1, np.int64)
    stride = 1
    for size in dims:
        along = (endpoints // stride) % size
        where = along[np.sort(np.unique(along, return_index=True)[1])]
        sizes.append(len(where))
        grid = (where[:, None] * stride + grid[None, :]).reshape(-1)
        # Not a full grid, and it would only grow: along the next dimension by as much again.
        if len(grid) > len(endpoints):
            return None
        stride *= size
    if len(grid) != len(endpoints) or not np.array_equal(grid, endpoints):
        return None
    return tuple(sizes)


@dataclass(eq=False, slots=True)
class ReadyPrograms(Sequence[ReadyProgram]):
    """A job's programs, each made ready when it is asked for: what is simulated is mostly the table."""

    programs: Sequence[Program]
    mesh: DeviceMesh
    _known: dict[tuple[object, object], Naming] = field(default_factory=dict)
    _made: dict[int, ReadyProgram] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.programs)

    @overload
    def __getitem__(self, number: int) -> ReadyProgram: ...
    @overload
    def __getitem__(self, number: slice) -> tuple[ReadyProgram, ...]: ...
    def __getitem__(self, number: int | slice) -> ReadyProgram | tuple[ReadyProgram, ...]:
        if isinstance(number, slice):
            return tuple(self[k] for k in range(*number.indices(len(self))))
        number = range(len(self))[number]
        if number not in self._made:
            program = self.programs[number]
            self._made[number] = ready_program(program, self.mesh, self._known)
        return self._made[number]


@dataclass(eq=False)
class ReadyJob:
    """A job with its programs made ready, and its groups, made when first met.

    ``channel`` is added to those of its messages to come.
    """

    number: int
    info: JobInfo
    topology: Topology
    programs: ReadyPrograms
    slots: Slots
    coflow_bytes: int = 0
    channel: int = 0
    _groups: dict[tuple[int, ...], Group] = field(default_factory=dict)
    _by_axes: dict[tuple[int, tuple[str, ...]], Group] = field(default_factory=dict)

    def settle(self, endpoints: I32, now: int) -> None:
        """Sit on other endpoints, and start now; of a job that has not begun."""
        self.info = replace(self.info, endpoints=endpoints, start_ps=now)
        self._groups.clear()
        self._by_axes.clear()

    def traits(self, iteration: int) -> dict[str, object]:
        """What a flow group says of its job."""
        return {
            "job": self.number,
            "coflow": (self.number << 20) | iteration,
            "coflow_bytes": self.coflow_bytes,
            "priority": self.info.priority,
            "weight": self.info.weight,
        }

    def program(self, rank: int) -> ReadyProgram:
        """The program of a rank."""
        return self.programs[int(self.info.workload.program_of[rank])]

    def group(self, rank: int, operation: Operation) -> Group:
        """The process group of a collective, seen from one of its members.

        Raises
        ------
        WorkloadError
            The rank is not in the group it names, or a rank is beyond the world.
        """
        if operation.ranks is None:
            key = (rank, operation.axes)
            known = self._by_axes.get(key)
            if known is None:
                ranks = self.info.workload.mesh.group(rank, operation.axes)
                folding = self.info.folding
                known = self.group_of(ranks) if folding is None else _folded(folding, ranks, operation.axes)
                for member in known.ranks:
                    self._by_axes[(member, operation.axes)] = known
            return known
        group = self.group_of(operation.ranks)
        if rank not in group.position:
            raise WorkloadError(
                f"rank {rank} runs {operation.name!r} on a group that it is not in: {operation.ranks}"
            )
        return group

    def group_of(self, ranks: tuple[int, ...]) -> Group:
        """The group of explicit ranks, in this order.

        Raises
        ------
        WorkloadError
            A rank is beyond the world, or comes twice.
        """
        known = self._groups.get(ranks)
        if known is None:
            world = self.info.workload.world_size
            if len(set(ranks)) != len(ranks) or not all(0 <= r < world for r in ranks):
                raise WorkloadError(f"group {ranks} is not made of different ranks in 0..{world - 1}")
            endpoints = np.ascontiguousarray(self.info.endpoints[list(ranks)], np.int32)
            position = {r: k for k, r in enumerate(ranks)}
            known = Group(ranks, position, endpoints, grid_dims(endpoints, self.topology.dims), ranks)
            self._groups[ranks] = known
        return known


def _folded(folding: Folding, ranks: tuple[int, ...], axes: tuple[str, ...]) -> Group:
    """The group along ``axes`` of which ``ranks`` are the representatives."""
    from cosim.engine.folding.translations import group_grid

    translations, whole = folding.translations, folding.whole
    members = translations.mesh.group(int(translations.representatives[ranks[0]]), axes)
    endpoints = np.ascontiguousarray(whole.endpoints[list(members)], np.int32)
    dims = grid_dims(endpoints, folding.topology.dims)
    grid = group_grid(translations, axes)
    position = {r: k for k, r in enumerate(ranks)}
    if len(members) == len(ranks):
        return Group(ranks, position, endpoints, dims, members)
    from cosim.engine.folding.template import representatives

    return Group(ranks, position, endpoints[representatives(grid)], dims, members, grid)


def check_job(number: int, info: JobInfo, topology: Topology) -> None:
    """Refuse a job that can't run there.

    Raises
    ------
    WorkloadError
        It doesn't fit the topology or the numbers that flow keys hold, or starts before time does.
    """
    what = f"job {number} {info.name!r}"
    ranks, endpoints = info.workload.world_size, info.endpoints
    if len(endpoints) != ranks:
        raise WorkloadError(f"{what} has {ranks} ranks, but {len(endpoints)} endpoints")
    if ranks and not 0 <= int(endpoints.min()) <= int(endpoints.max()) < topology.num_endpoints:
        raise WorkloadError(
            f"{what} sits on endpoints {int(endpoints.min())} to {int(endpoints.max())}; "
            f"{topology.name} has 0 to {topology.num_endpoints - 1}"
        )
    if info.on_units and (info.pace is not None or info.driven):
        raise WorkloadError(
            f"{what} has computations that share units with kernels: these have no stragglers, jitter or "
            "events, and no code issues them",
            hint="leave out network.workgroup_time",
        )
    if info.start_ps < 0:
        raise WorkloadError(f"{what} starts at {info.start_ps} ps; time begins at 0")
    for name, value, limit in (
        ("the number of jobs", number, 1 << 12),
        ("iterations", info.iterations, 1 << 20),
        ("ranks", ranks, 1 << 19),
    ):
        if value >= limit:
            raise WorkloadError(f"{what}: {name} must stay below {limit}, for flow keys; here {value}")


def ready_job(number: int, info: JobInfo, topology: Topology) -> ReadyJob:
    """Make a job ready to run; it is checked by :func:`check_job`."""
    check_job(number, info, topology)
    whole = info.whole_workload
    return ReadyJob(number, info, topology, ready_programs(whole), slots_of(whole.table))


@once
def ready_programs(workload: Workload) -> ReadyPrograms:
    """A workload's programs, made ready."""
    return ReadyPrograms(workload.programs, workload.mesh)


COLLECTIVES = {c.value: c for c in Collective}
