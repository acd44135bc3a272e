"""One rank's operations as nodes: one iteration of one job, stream order and queues made dependencies."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

import numpy as np

from cosim.engine.programs import COLLECTIVES, Group, Naming, ReadyJob, ReadyProgram
from cosim.kernel import kernel
from cosim.network.flows import I32, I64
from cosim.pattern.plan import FIRST, Plan
from cosim.pattern.planner import Planner
from cosim.pattern.template import Template
from cosim.translation.flat.gates import Gates, gates_of
from cosim.translation.flat.nodes import COMPUTE, ENTRY, RECV, SEND, NodeBuilder, Nodes
from cosim.translation.flat.order import Order, order_of
from cosim.translation.flat.share import PlaceNodes, TemplateIndex, share_of
from cosim.translation.loss_report import TranslationError
from cosim.workload.match_messages import peers
from cosim.workload.program import Operation, OpKind

_KEPT_NODES = 1 << 20
"""Nodes of shares that are kept for other ranks at the same place of the same template."""


@dataclass(frozen=True, eq=False)
class RankProgram:
    """One iteration of a rank. A dependency on :data:`~cosim.translation.flat.nodes.ENTRY` is one on the
    iteration's beginning; ``ends[op]`` are the nodes that an operation's end waits for, ``last`` those that
    the iteration's does.
    """

    nodes: Nodes
    ends: tuple[tuple[int, ...], ...]
    last: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class PlanView:
    """A plan with its gates, where each position sits in each phase, and the tags that its parts take."""

    plan: Plan
    gates: Gates
    group: tuple[I32, ...]
    place: tuple[I32, ...]
    tag_base: tuple[int, ...]
    span: int


class Flattener:
    """Makes the nodes of a job's ranks, one rank at a time.

    ``start_ps`` is int64 [ranks, operations]: when a run started each; without it, order follows the program.
    """

    def __init__(self, job: ReadyJob, planner: Planner, start_ps: I64 | None = None) -> None:
        self.job = job
        self._planner = planner
        self._start_ps = start_ps
        self._orders = {id(program): order_of(program) for program in job.programs}
        self._plans: dict[tuple[object, ...], dict[int, PlanView]] = {}
        self._views: dict[int, PlanView] = {}
        self._indices: dict[int, TemplateIndex] = {}
        self._shares: OrderedDict[tuple[int, int], PlaceNodes] = OrderedDict()
        self._kept = 0
        self._number_tags()

    def order(self, program: ReadyProgram) -> Order:
        """A program's order, as far as it is the same for all its ranks."""
        return self._orders[id(program)]

    def order_at(self, rank: int) -> Order:
        """The order on a rank."""
        program = self.job.program(rank)
        found = self.order(program)
        if self._start_ps is None or not found.open:
            return found
        return order_of(program, self._start_ps[rank].tolist())

    def _number_tags(self) -> None:
        """Tags: the job's own, then those of requests, then one range for each collective."""
        workload = self.job.info.workload
        own = sorted({op.tag for p in workload.programs for op in p.operations if op.peer is not None})
        self.first_tag = own[-1] + 1 if own else 0
        self.request_tag = {tag: self.first_tag + n for n, tag in enumerate(own)}
        self._collective_tag = self.first_tag + (len(own) if workload.rendezvous else 0)
        self._ordinal: dict[tuple[Naming, int], int] = {}
        widest = 1
        for number, program in enumerate(self.job.programs):
            ranks = np.flatnonzero(workload.program_of == number)
            for at, op in enumerate(program.operations if len(ranks) else ()):
                if op.kind is OpKind.COLLECTIVE:
                    key = program.naming[at], program.occurrence[at]
                    if key not in self._ordinal:
                        self._ordinal[key] = len(self._ordinal)
                        group = self.job.group(int(ranks[0]), op)
                        widest = max(widest, self.plan(program, at, group).span)
        # A power of two, so that a tag shows its collective.
        self._stride = 1 << (widest - 1).bit_length()
        self.num_tags = self._collective_tag + self._stride * len(self._ordinal)

    def plan(self, program: ReadyProgram, at: int, group: Group) -> PlanView:
        """The plan of a collective: whose turn it is follows from the collectives of the group before it."""
        first = min(group.ranks)
        lead = self.job.program(first)
        name = program.naming[at]
        # Where a run says the order, ranks of one program may differ in it: their plans are not shared then.
        of_rank = first if self._start_ps is not None and self.order(lead).open else -1
        endpoints = tuple(group.endpoints.tolist())
        key = id(lead), of_rank, name, group.dims, endpoints
        known = self._plans.get(key)
        if known is None:
            known = self._plans[key] = {}
            turn = FIRST
            # Turns follow the order in which the group's first rank comes to its collectives: all must take
            # the same.
            for op in self.order_at(first).sequence:
                operation = lead.operations[op]
                if operation.kind is OpKind.COLLECTIVE and lead.naming[op] == name:
                    plan = self._planner.plan(
                        COLLECTIVES[operation.collective],
                        len(group.ranks),
                        operation.size_bytes,
                        root=operation.root,
                        dims=group.dims,
                        turn=turn,
                        endpoints=endpoints,
                    )
                    turn = plan.turn
                    known[lead.occurrence[op]] = self._view(plan)
        return known[program.occurrence[at]]

    def _view(self, plan: Plan) -> PlanView:
        found = self._views.get(id(plan))
        if found is not None:
            return found
        groups, places = [], []
        for phase in plan.chunks[0]:
            group, place = np.empty(plan.num_ranks, np.int32), np.empty(plan.num_ranks, np.int32)
            group[phase.groups] = np.arange(len(phase.groups), dtype=np.int32)[:, None]
            place[phase.groups] = np.arange(phase.groups.shape[1], dtype=np.int32)[None, :]
            groups.append(group)
            places.append(place)
        # As many tags as messages from one rank to another: receives are told apart by tag alone.
        spans = [self._index(phase.template).span for chunk in plan.chunks for phase in chunk]
        base = np.cumsum([0, *spans]).tolist()
        found = PlanView(plan, gates_of(plan), tuple(groups), tuple(places), tuple(base[:-1]), base[-1])
        self._views[id(plan)] = found
        return found

    def _index(self, template: Template) -> TemplateIndex:
        found = self._indices.get(id(template))
        if found is None:
            found = self._indices[id(template)] = TemplateIndex(template)
        return found

    def share(self, template: Template, place: int) -> PlaceNodes:
        """A rank's share of a template; the last ones are kept."""
        key = id(template), place
        found = self._shares.get(key)
        if found is None:
            found = self._shares[key] = share_of(self._index(template), place)
            self._kept += len(found.kind)
            while self._kept > _KEPT_NODES and len(self._shares) > 1:
                _, dropped = self._shares.popitem(last=False)
                self._kept -= len(dropped.kind)
        return found

    def tag(self, program: ReadyProgram, at: int, view: PlanView) -> int:
        """The first tag of a collective; each of its messages from one rank to another has one of its own.

        Raises
        ------
        TranslationError
            Groups of one name whose plans are of very different form.
        """
        if view.span > self._stride:
            raise TranslationError(
                f"a collective {program.operations[at].name!r} takes {view.span} tags on one group, at most "
                f"{self._stride} on another",
                hint="place the job so that its groups are alike",
            )
        key = program.naming[at], program.occurrence[at]
        return self._collective_tag + self._stride * self._ordinal[key]

    def rank(self, rank: int) -> RankProgram:
        """The nodes of one rank."""
        return _RankBuilder(self, rank).make()


class _RankBuilder:
    """A rank's nodes under construction."""

    def __init__(self, flat: Flattener, rank: int) -> None:
        self.flat, self.number = flat, rank
        self.program = flat.job.program(rank)
        self.builder = NodeBuilder()

    def make(self) -> RankProgram:
        """All operations, in an order in which each stands after those that it waits for."""
        order = self.flat.order_at(self.number)
        ends: list[tuple[int, ...]] = [()] * len(self.program.operations)
        for at in order.sequence:
            operation = self.program.operations[at]
            waits = {end for dep in operation.deps for end in ends[dep]}
            if order.before[at] >= 0:
                waits.update(ends[order.before[at]])
            ends[at] = tuple(self._operation(at, operation, sorted(waits) or [ENTRY]))
        last = {end for at, after in enumerate(self.program.successors) if not after for end in ends[at]}
        return RankProgram(self.builder.nodes(), tuple(ends), tuple(sorted(last)))

    def _operation(self, at: int, operation: Operation, waits: list[int]) -> list[int]:
        if operation.kind is OpKind.COLLECTIVE:
            return self._collective(at, operation, waits)
        if operation.kind in (OpKind.COMPUTE, OpKind.MEMORY):
            return [self.builder.one(COMPUTE, waits, at, duration_ps=operation.duration_ps)]
        return [self._message(at, operation, waits)]

    def _message(self, at: int, operation: Operation, waits: list[int]) -> int:
        assert operation.peer is not None
        workload = self.flat.job.info.workload
        peer = int(peers(workload, np.array([self.number]), operation.peer)[0])
        sends = operation.kind is OpKind.SEND
        if workload.rendezvous:  # the receiver asks first, and the message waits for that
            tag = self.flat.request_tag[operation.tag]
            kind = RECV if sends else SEND
            asked = self.builder.one(kind, waits, at, peer=peer, size_bytes=kernel.REQUEST_BYTES, tag=tag)
            waits = [asked] if sends else waits
        return self.builder.one(
            SEND if sends else RECV,
            waits,
            at,
            peer=peer,
            size_bytes=operation.size_bytes,
            tag=operation.tag,
            channel=operation.channel,
        )

    def _collective(self, at: int, operation: Operation, waits: list[int]) -> list[int]:
        group = self.flat.job.group(self.number, operation)
        view = self.flat.plan(self.program, at, group)
        tag = self.flat.tag(self.program, at, view)
        ranks = np.array(group.ranks, np.int32)
        position = group.position[self.number]
        steps = len(view.plan.chunks[0])
        entry = self.builder.join(waits, at)
        ended: dict[int, list[int]] = {}
        for part in view.gates.sequence:
            chunk, step = divmod(part, steps)
            phase = view.plan.chunks[chunk][step]
            before = ended[part - 1] if step else entry
            gate = view.gates.gate[part]
            if gate >= 0:
                before = self.builder.join([*before, *ended[gate]], at)
            members = phase.groups[view.group[step][position]]
            share = self.flat.share(phase.template, int(view.place[step][position]))
            mine = self._add(share, before[0], at, ranks[members], tag + view.tag_base[part])
            ended[part] = self.builder.join(mine, at)
        finished = [ended[chunk * steps + steps - 1] for chunk in range(len(view.plan.chunks))]
        return self.builder.join([end for ends in finished for end in ends], at)

    def _add(self, share: PlaceNodes, entry: int, at: int, ranks: I32, tag: int) -> list[int]:
        base = self.builder.count
        moves = share.kind != COMPUTE
        nodes = Nodes(
            kind=share.kind,
            peer=np.where(moves, ranks[share.peer], -1).astype(np.int32),
            size_bytes=share.size_bytes,
            duration_ps=share.duration_ps,
            tag=np.where(moves, tag + share.sequence, 0),
            channel=share.channel,
            op=np.full(len(share.kind), at, np.int32),
            dep_ptr=share.dep_ptr,
            dep=np.where(share.dep == ENTRY, entry, share.dep + base),
        )
        self.builder.block(nodes)
        return [entry if end == ENTRY else base + end for end in share.ends.tolist()]
