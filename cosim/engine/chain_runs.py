"""Chains under way: given to the network whole, written down when their last rank is through."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress, repeat
from typing import NamedTuple

import numpy as np

from cosim.engine.chain_table import MOST_ROWS, ChainTable, chain_table
from cosim.engine.chains import Chain, find_chains, positions
from cosim.engine.desk import Desk
from cosim.engine.journal import Journal
from cosim.engine.meeting import Meeting
from cosim.engine.plans import Plans
from cosim.engine.programs import Group, ReadyProgram
from cosim.engine.rank import Rank
from cosim.engine.records import CollectiveRecord
from cosim.network.flows import I32, I64, pack_key
from cosim.pattern.plan import FIRST, Plan
from cosim.workload.program import OpKind

_NONE = -1


@dataclass(frozen=True, eq=False, slots=True)
class _Bound:
    """Chains of a shape on a group: their table, and what their records say."""

    group: Group
    endpoints: I32
    plans: tuple[Plan, ...]
    carried: ChainTable
    delays: tuple[int, ...]
    positions: I64
    """int64[operations, 4]: see :func:`~cosim.engine.chains.positions`."""
    kinds: tuple[str, ...]
    sizes: tuple[int, ...]
    algorithms: tuple[str, ...]
    messages: tuple[int, ...]
    copies: int
    folded: int


_CUT = "too long to be carried whole"
_Carried = dict[int, tuple[Chain, _Bound] | None]
"""What a group carries, by first operation; None: operation by operation."""


class _Done(NamedTuple):
    """A chain that ended; ``times`` int64[1 + collectives, ranks]: arrivals, and ends of each."""

    chain: Chain
    job: int
    iteration: int
    times: I64


class _Run:
    """A chain of a group in an iteration; ``handle`` is the desk's, ``ends`` says where its times are."""

    def __init__(self, owner: ChainRuns, chain: Chain, bound: _Bound, first: Rank) -> None:
        self.owner = owner
        self.chain = chain
        self.bound = bound
        self.job = first.job
        self.iteration = first.iteration
        self.ranks: list[Rank | None] = [None] * len(bound.group.ranks)
        self.came: I64 = np.full(len(self.ranks), _NONE, np.int64)
        self.left = len(self.ranks)
        self.handle = _NONE
        self.ends = _NONE

    def arrived(self, index: int, now: int, cause: int) -> None:
        """A rank's last operation ends."""
        del now
        self.owner.through(self, index, cause)


class ChainRuns:
    """All chains of a run. ``ended`` is told rank, operation, and when its end now became certain."""

    def __init__(
        self, desk: Desk, plans: Plans, journal: Journal, ended: Callable[[Rank, int, int], None]
    ) -> None:
        self._desk = desk
        self._plans = plans
        self._journal = journal
        self._ended = ended
        self._chains: dict[int, tuple[ReadyProgram, dict[int, Chain]]] = {}
        self._tables: dict[tuple[tuple[int, int, int], ...], ChainTable] = {}
        self._carried: dict[tuple[int, int, tuple[int, ...]], _Carried] = {}
        self._bound: dict[tuple[object, ...], _Bound | str] = {}
        self._in_turn: dict[tuple[object, ...], bool] = {}
        self._done: dict[int, tuple[_Bound, list[_Done]]] = {}
        self._runs: dict[tuple[int, tuple[int, ...], int, int], _Run] = {}

    def start(self, rank: Rank, op: int, now: int) -> bool:
        """Start a chain on a rank, if ``op`` begins one that can be carried whole."""
        program = rank.program
        known = self._chains.get(id(program))
        if known is None:
            chains = find_chains(program) if rank.job.info.pace is None else {}
            known = self._chains[id(program)] = program, chains
        chain = known[1].get(op)
        if chain is None:
            return False
        job = rank.job
        group = job.group(rank.number, program.operations[chain.collectives[0]])
        key = job.number, group.ranks, op, rank.iteration
        run = self._runs.get(key)
        if run is None:
            carried = self._carried.setdefault((job.number, id(program), group.ranks), {})
            if op not in carried:
                self._settle(rank, chain, group, known[1], carried)
            found = carried[op]
            if found is None:
                return False
            run = self._runs[key] = self._open(rank, *found)
        place = group.position[rank.number]
        run.ranks[place] = rank
        run.came[place] = now
        begins = now + run.bound.delays[0]
        self._desk.start(run.handle, place, begins, begins)
        return True

    def _open(self, rank: Rank, chain: Chain, bound: _Bound) -> _Run:
        run = _Run(self, chain, bound, rank)
        job = rank.job
        key = pack_key(job.number, rank.iteration, chain.collectives[0], min(bound.group.ranks))
        run.handle, run.ends = self._desk.open_chain(
            run, bound.carried, bound.endpoints, key, **job.traits(rank.iteration)
        )
        return run

    def _settle(
        self, rank: Rank, chain: Chain, group: Group, chains: dict[int, Chain], carried: _Carried
    ) -> None:
        """Say how a group carries a chain: whole, in parts, or not, operation by operation."""
        carried[chain.operations[0]] = None
        bound = self._bind(rank, chain, group)
        if isinstance(bound, _Bound):
            carried[chain.operations[0]] = chain, bound
        elif bound == _CUT:
            for half in chain.halves():
                chains.setdefault(half.operations[0], half)
                self._settle(rank, half, group, chains, carried)

    def _bind(self, rank: Rank, chain: Chain, group: Group) -> _Bound | str:
        """A chain on a group; a text where it has to be cut, or to go operation by operation."""
        key = rank.job.number, id(chain.program), chain.shape, group.ranks
        found = self._bound.get(key)
        if found is None:
            found = self._bound[key] = self._carry(rank, chain, group)
        return found

    def _goes_in_turn(self, rank: Rank, chain: Chain, group: Group) -> bool:
        """Whether all ranks of the group go through the same, and no plan depends on those before it."""
        key = rank.job.number, id(chain.program), chain.naming, group.ranks
        if key not in self._in_turn:
            program = chain.program
            of_group = [
                one
                for one, name in zip(program.operations, program.naming, strict=True)
                if one.kind is OpKind.COLLECTIVE and name == chain.naming
            ]
            self._in_turn[key] = all(rank.job.program(other) is program for other in group.ranks) and all(
                self._plans.whole(one, group).turn == FIRST for one in of_group
            )
        return self._in_turn[key]

    def _carry(self, rank: Rank, chain: Chain, group: Group) -> _Bound | str:
        if not self._goes_in_turn(rank, chain, group):
            return "ranks or plans differ"
        operations = chain.program.operations
        plans = tuple(self._plans.whole(operations[op], group) for op in chain.collectives)
        simulated = [self._plans.simulated(plan, group) for plan in plans]
        if any(len(plan.chunks) > 1 or len(plan.chunks[0]) > 1 for plan in simulated):
            return "chunks and phases"
        phases = [plan.chunks[0][0] for plan in simulated]
        whole = np.arange(len(group.ranks))
        if any(len(one.groups) > 1 or not np.array_equal(one.groups[0], whole) for one in phases):
            return "sub-groups"
        if any(not np.array_equal(one.participants, phases[0].participants) for one in phases):
            return "participants differ"
        templates = [one.template for one in phases]
        if sum(len(one.src) for one in templates) > MOST_ROWS:
            return _CUT
        behind = [op - chain.collectives[0] for op in chain.collectives]
        shape = tuple(zip(map(id, templates), (0, *chain.delays[1:-1]), behind, strict=True))
        shape = (*shape, (0, chain.delays[-1], 0))
        carried = self._tables.get(shape)
        if carried is None:
            carried = self._tables[shape] = chain_table(templates, chain.delays, behind, chain.delays[-1])
        endpoints = group.endpoints[phases[0].participants[0]]
        where = np.array(list(positions(chain)), np.int64)
        whole_groups = len(group.members) // len(group.ranks)
        return _Bound(
            group,
            endpoints,
            plans,
            carried,
            chain.delays,
            where,
            kinds=tuple(operations[op].collective for op in chain.collectives),
            sizes=tuple(plan.size_bytes for plan in plans),
            algorithms=tuple(plan.algorithm for plan in plans),
            messages=tuple(plan.num_messages for plan in plans),
            copies=rank.job.info.copies // whole_groups,
            folded=whole_groups,
        )

    def through(self, run: _Run, index: int, cause: int) -> None:
        """A rank is through."""
        rank, chain = run.ranks[index], run.chain
        assert rank is not None
        ends = self._ends(run)
        row, delay = run.bound.positions[-1, :2].tolist()
        began = int(ends[row - 1, index] if row else run.came[index])
        rank.pass_chain(chain, began + delay)
        self._ended(rank, chain.operations[-1], cause)
        run.left -= 1
        if run.left:
            return
        times = np.concatenate([run.came[None], ends])
        done = _Done(chain, run.job.number, run.iteration, times)
        self._done.setdefault(id(run.bound), (run.bound, []))[1].append(done)
        self._journal.expect((len(chain.operations) - 1) * len(run.ranks))
        del self._runs[run.job.number, run.bound.group.ranks, chain.operations[0], run.iteration]
        self._desk.finish_chain(run.handle, run.ends, ends.size)

    def _ends(self, run: _Run) -> I64:
        """int64[collectives, ranks]: when each ended, -1: not yet. A view."""
        shape = len(run.bound.plans), len(run.ranks)
        return self._desk.ends(run.ends, shape[0] * shape[1]).reshape(shape)

    def write_down(self, now: int) -> None:
        """Write down all chains that ended, and what ended by ``now`` of those under way."""
        for bound, done in self._done.values():
            self._write(bound, done, now)
        self._done.clear()
        for run in self._runs.values():
            times = np.concatenate([run.came[None], self._ends(run)])
            times[times > now] = _NONE
            self._write(run.bound, [_Done(run.chain, run.job.number, run.iteration, times)], now)

    def _write(self, bound: _Bound, done: Sequence[_Done], now: int) -> None:
        """Write down what ended by ``now`` in chains of a shape."""
        journal, ranks = self._journal, bound.group.ranks
        times = np.stack([one.times for one in done])
        start_row, start_delay, end_row, end_delay = bound.positions[:-1].T
        starts = times[:, start_row] + start_delay[:, None]
        rows = np.empty((*starts.shape, 6), np.int64)
        rows[..., 0] = np.array([one.job for one in done])[:, None, None]
        rows[..., 1] = np.array([one.iteration for one in done])[:, None, None]
        rows[..., 2] = ranks
        rows[..., 3] = np.array([one.chain.operations[:-1] for one in done])[:, :, None]
        rows[..., 4], rows[..., 5] = starts, times[:, end_row] + end_delay[:, None]
        known = (times[:, start_row] >= 0) & (times[:, end_row] >= 0)
        journal.ended_together(rows[known & (rows[..., 5] <= now)])
        come = times[:, :-1] + np.array(bound.delays[:-1])[:, None]
        columns = come.min(2), come.max(2), times[:, 1:].max(2), times[:, 1:].min(2) >= 0
        for one, first, ready, last, ended in zip(done, *(each.tolist() for each in columns), strict=True):
            records = zip(
                repeat(one.job),
                repeat(one.iteration),
                one.chain.collectives,
                one.chain.names,
                bound.kinds,
                bound.algorithms,
                repeat(ranks),
                bound.sizes,
                bound.messages,
                first,
                ready,
                last,
                repeat(bound.copies),
                repeat(bound.folded),
            )
            journal.collectives.extend(map(CollectiveRecord._make, compress(records, ended)))

    def meetings(self) -> Iterator[Meeting]:
        """Collectives under way in chains, which nothing will go on with: ranks are put where they stand."""
        for run in self._runs.values():
            times, chain = self._ends(run), run.chain
            met: dict[int, Meeting] = {}
            for place, rank in enumerate(run.ranks):
                if rank is None or times[-1, place] >= 0:
                    continue
                at = int((times[:, place] >= 0).sum())
                rank.stand_in_chain(chain, chain.collectives[at])
                for k, op in enumerate(chain.collectives[: at + 1]):
                    if (times[k] >= 0).all():
                        continue
                    operation = chain.program.operations[op]
                    if k not in met:
                        met[k] = Meeting(run.bound.group, operation, op, rank, run.iteration, _NONE)
                    met[k].arrived.add(rank.number)
                    if times[k, place] >= 0:
                        met[k].left.add(rank.number)
            yield from met.values()
