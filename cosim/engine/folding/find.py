"""Finding what can be folded: for each mesh axis the smallest step whose translations are a symmetry.

Symmetric must be: the programs (same program, groups named by mesh axes, peers not along the axis), the
algorithms (a template that looks the same from every rank), the network (links, rates, latencies, paths), and
the network's model (nothing goes by who was first at an instant). Then all images of a flow happen at the
same times as the flow itself, by induction over instants: at each, what an image meets is the image of what
the flow meets. Where one of these fails the axis isn't folded, and the reason is told.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from cosim.engine.folding.folding import Folding
from cosim.engine.folding.links import Routes, SendingPairs, link_orbits
from cosim.engine.folding.template import Grid, fold_plan, representatives
from cosim.engine.folding.translations import Translations, group_grid
from cosim.engine.programs import COLLECTIVES, grid_dims
from cosim.engine.records import JobInfo
from cosim.engine.rows import unique_rows
from cosim.network.flows import I64
from cosim.network.simulator import Capabilities
from cosim.pattern.plan import FIRST, Plan
from cosim.pattern.planner import Planner
from cosim.pattern.template import Template
from cosim.topology.graph import Topology
from cosim.workload.looked_up import once
from cosim.workload.program import Operation, OpKind, Workload


def find_folding(
    topology: Topology,
    network: Capabilities,
    jobs: Sequence[JobInfo],
    planner: Planner,
    *,
    only_if_cheaper: bool = False,
) -> tuple[Folding | None, tuple[str, ...]]:
    """The folding of the only job, or None; and a line for each axis that is not folded, saying why.

    ``only_if_cheaper`` does not look where that would take longer than to simulate every rank.

    The job is one that :func:`~cosim.engine.replay.replay` takes as it is: mistakes in it are found there.
    """
    if len(jobs) > 1:
        return None, (f"{len(jobs)} jobs share the fabric, and none looks the same from all its ranks",)
    if not network.symmetric:
        return None, (
            f"{network.name} may serve first who comes first, so that equal ranks need not fare equally",
        )
    # Each of these makes one rank unlike its images in a way that programs and links don't show.
    if jobs[0].pace is not None:
        return None, ("stragglers, jitter or events: ranks do not compute alike",)
    if topology.changes is not None:
        return None, ("events of links: what looks the same now need not later",)
    if jobs[0].memory_nodes is not None:
        return None, ("memory nodes are in the fabric, and nearer to some ranks than to others",)
    if jobs[0].devices is not None and (jobs[0].devices >= 0).any():
        return None, ("ranks wait for each other at shared memory, and one of them is first",)
    if len(np.unique(jobs[0].endpoints)) < len(jobs[0].endpoints):
        return None, ("several ranks sit on one endpoint",)
    if any(planner.by_links(kind) for kind in COLLECTIVES.values()):
        return None, ("a collective goes by the links of its group, which nothing shows to be alike",)
    search = _Search(topology, jobs[0], planner)
    if only_if_cheaper and (why := search.is_dear()):
        return None, (why,)
    return search.run()


class _Search:
    """Tries steps axis by axis, keeping those that work."""

    def __init__(self, topology: Topology, job: JobInfo, planner: Planner) -> None:
        self.topology, self.job, self.planner = topology, job, planner
        self.mesh = job.workload.mesh
        self.routes = Routes(topology, job.endpoints)
        self.operations = _communicating(job.workload)
        self._sent: dict[tuple[int, Grid], tuple[Plan, I64 | str]] = {}

    def run(self) -> tuple[Folding | None, tuple[str, ...]]:
        steps: dict[str, int] = {}
        found: Folding | None = None
        reasons = []
        for axis, size in self.mesh.axes.items():
            if size == 1:
                continue
            why = self.asymmetric_programs(axis)
            # Smallest first: it leaves the fewest ranks. Axes are tried one after another, each with the
            # steps that were found for those before it.
            for step in [] if why else [s for s in range(1, size) if size % s == 0]:
                tried = self.attempt({**steps, axis: step})
                if isinstance(tried, Folding):
                    steps[axis], found, why = step, tried, ""
                    break
                # Of several steps that fail, the first one's reason: it is of the largest symmetry that was
                # hoped for.
                why = why or tried
            if why:
                reasons.append(f"{axis} ({size}): {why}")
        return (None if found is None else replace(found, reasons=tuple(reasons))), tuple(reasons)

    def is_dear(self) -> str:
        """Why to look for a folding would take longer than to simulate every rank; empty where it would not.

        A row of a template looked at, for a step of an axis, takes about twice as long as a message.
        """
        translations = Translations(self.mesh, {})
        steps = sum(1 for size in self.mesh.axes.values() for step in range(1, size) if size % step == 0)
        rows: dict[int, int] = {}
        messages = 0
        for number, operation in self.operations:
            members = np.flatnonzero(self.job.workload.program_of == number)
            if operation.collective not in COLLECTIVES or operation.ranks is not None:
                continue  # no collective, or one that is refused, here or when it is run
            # Plans of other turns are as large: one says what they cost.
            for plan in itertools.islice(self.plans_of(operation, translations, members), 1):
                rows.update((id(t), len(t.src)) for t, _ in _templates(plan))
                uses = _uses(self.job.workload)[number][_what(operation)]
                messages += plan.num_messages * len(members) // plan.num_ranks * uses
        # The symmetry is found once, however many iterations follow.
        messages *= self.job.iterations
        if 2 * steps * sum(rows.values()) <= messages:
            return ""
        return f"{messages:,} messages are simulated sooner than their symmetry is found"

    def asymmetric_programs(self, axis: str) -> str:
        """Why ranks along an axis run different things; empty where they do not."""
        workload = self.job.workload
        sizes = tuple(self.mesh.axes.values())
        where = list(self.mesh.axes).index(axis)
        grid = workload.program_of.reshape(sizes)
        # Program by coordinates: along the axis every rank must run what its first one does.
        if (grid != grid.take([0], axis=where)).any():
            return "ranks along it run different programs"
        for _, operation in self.operations:
            if operation.ranks is not None or (
                operation.peer is not None and operation.peer.rank is not None
            ):
                return f"operation {operation.name!r} names ranks one by one, not by mesh axes"
            # Pipelines: the first stage receives nothing, and the last one sends nothing.
            if operation.peer is not None and operation.peer.axis == axis:
                return f"operation {operation.name!r} sends along it, and the ends of the axis are ends"
        return ""

    def attempt(self, steps: dict[str, int]) -> Folding | str:
        """Fold by these steps; a text where that is no symmetry."""
        translations = Translations(self.mesh, steps)
        program_of = self.job.workload.program_of[translations.representatives]
        parts = []
        for number, operation in self.operations:
            members = np.flatnonzero(program_of == number)
            if operation.kind is not OpKind.COLLECTIVE:
                parts.append(self.message(translations, operation, members))
                continue
            for plan in self.plans_of(operation, translations, members):
                found = self.collective(translations, operation, plan, members)
                if isinstance(found, str):
                    return found
                parts.append(found)
        # A path is looked at once, however many operations go along it.
        table = _distinct(np.concatenate([np.zeros((0, 3), np.int64), *parts]))
        pairs = SendingPairs(table[:, 0], table[:, 1], table[:, 2])
        orbits = link_orbits(self.topology, self.routes, pairs, translations)
        if isinstance(orbits, str):
            return orbits
        return Folding(self.job, translations, self.topology, orbits)

    def plans_of(self, operation: Operation, translations: Translations, members: I64) -> Iterator[Plan]:
        """Every plan that the operation may get, whatever its turn; none where nobody runs it."""
        if not len(members):
            return
        ranks = self.mesh.group(int(translations.representatives[members[0]]), operation.axes)
        dims = grid_dims(self.job.endpoints[list(ranks)], self.topology.dims)
        kind = COLLECTIVES[operation.collective]
        turn = FIRST
        # Algorithms that take turns (over rings, trees) come round to the first again; 64 bounds one that
        # doesn't.
        for _ in range(64):
            size, root = operation.size_bytes, operation.root
            plan = self.planner.plan(kind, len(ranks), size, root=root, dims=dims, turn=turn)
            yield plan
            turn = plan.turn
            if turn == FIRST:
                return

    def collective(
        self, translations: Translations, operation: Operation, plan: Plan, members: I64
    ) -> I64 | str:
        """(Source rank, destination rank, channel) of what representatives send in a collective."""
        grid = group_grid(translations, operation.axes)
        if (
            not _folds(grid)
            and len(plan.chunks[0]) > 1
            and not self.same_dims(translations, operation, members)
        ):
            return f"groups of {operation.name!r} lie differently in the topology's dimensions"
        sent = self.sent(plan, grid)
        if isinstance(sent, str):
            return sent
        # The plan's positions are those of `representatives`: who is simulated first, then whom they stand
        # for.
        ranks = self.groups(translations, operation, members)
        src, dst = ranks[:, sent[:, 0]], ranks[:, sent[:, 1]]
        channel = np.broadcast_to(sent[:, 2], src.shape)
        return np.stack([one.reshape(-1) for one in (src, dst, channel)], axis=1)

    def sent(self, plan: Plan, grid: Grid) -> I64 | str:
        """(Sender's position, receiver's, channel) of what representatives send in a plan, each once; or why
        it is no symmetry. Found once for all programs and steps that have the same.
        """
        key = id(plan), grid
        if key not in self._sent:
            # A group along axes that aren't folded stays whole: its images are other groups, each with the
            # same template.
            tried = fold_plan(plan, grid) if _folds(grid) else plan
            self._sent[key] = plan, tried if isinstance(tried, str) else _sent(tried)
        return self._sent[key][1]

    def groups(self, translations: Translations, operation: Operation, members: I64) -> I64:
        """Ranks of each group that representatives are in, these first, then those that they stand for:
        int64[groups, ranks].
        """
        order = representatives(group_grid(translations, operation.axes))
        return self.mesh.groups(translations.representatives[members], operation.axes)[:, order]

    def same_dims(self, translations: Translations, operation: Operation, members: I64) -> bool:
        """Whether all images of a group lie alike in the topology's dimensions."""
        for ranks in self.groups(translations, operation, members):
            found = {
                grid_dims(self.job.endpoints[np.sort(image)], self.topology.dims)
                for image in translations.images(ranks)
            }
            if len(found) > 1:
                return False
        return True

    def message(self, translations: Translations, operation: Operation, members: I64) -> I64:
        """(Sender, receiver, channel 0) of a SEND of each representative, and of requests for it."""
        peer, sizes = operation.peer, self.mesh.axes
        if peer is None or peer.axis is None or peer.axis not in sizes:
            return np.zeros((0, 3), np.int64)  # refused when it is run
        if operation.kind is not OpKind.SEND and not self.job.workload.rendezvous:
            return np.zeros((0, 3), np.int64)  # a receive sends nothing back: only a rendezvous' request does
        ranks = translations.representatives[members]
        where = np.array(np.unravel_index(ranks, tuple(sizes.values())))
        moved = where[list(sizes).index(peer.axis)]
        moved += peer.offset
        has_peer = (moved >= 0) & (moved < sizes[peer.axis])
        peers = np.ravel_multi_index(tuple(where[:, has_peer]), tuple(sizes.values()))
        return np.stack([ranks[has_peer], peers, np.zeros_like(peers)], axis=1)


def _what(operation: Operation) -> tuple[object, ...]:
    """What two operations have the same of that are the same collective."""
    return operation.collective, operation.axes, operation.ranks, operation.size_bytes, operation.root


@once
def _communicating(workload: Workload) -> list[tuple[int, Operation]]:
    """What communicates, with its program's number; alike ones once."""
    seen: dict[tuple[object, ...], tuple[int, Operation]] = {}
    for number, program in enumerate(workload.programs):
        for o in program.operations:
            if o.kind is OpKind.COLLECTIVE:
                # Layers repeat: a model of a hundred has as many different operations as a model of one.
                seen.setdefault((number, *_what(o)), (number, o))
            elif o.kind in (OpKind.SEND, OpKind.RECV):
                seen.setdefault((number, o.kind, o.peer), (number, o))
    return list(seen.values())


@once
def _uses(workload: Workload) -> list[Counter[tuple[object, ...]]]:
    """How often each program has each collective."""
    return [
        Counter(_what(one) for one in program.operations if one.kind is OpKind.COLLECTIVE)
        for program in workload.programs
    ]


def _folds(grid: Grid) -> bool:
    """Whether any axis of a group is folded."""
    return any(step < size for size, step in grid)


def _sent(plan: Plan) -> I64:
    """(Sender's position, receiver's, channel) of what is sent in a plan, each once."""
    rows = [
        _distinct(np.stack([part[t.src], part[t.dst], t.channel.astype(np.int64)], axis=1))
        for t, part in _templates(plan)
    ]
    sent = _distinct(np.concatenate(rows))
    return np.asarray(sent[sent[:, 0] != sent[:, 1]], np.int64)  # what a rank sends itself has no path


def _distinct(rows: I64) -> I64:
    """Rows of three numbers, each once, in their order."""
    return rows[unique_rows(*rows.T)[0]]


def _templates(plan: Plan) -> Iterator[tuple[Template, I64]]:
    """Each template with the positions of its participants, for every sub-group; alike ones once."""
    seen = set()
    for chunk in plan.chunks:
        for phase in chunk:
            for number, part in enumerate(phase.participants):
                key = (id(phase.template), id(phase.groups), number)
                if key not in seen:
                    seen.add(key)
                    yield phase.template, part.astype(np.int64)
