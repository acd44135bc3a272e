"""The replay: programs run on ranks, messages on the network, closed-loop, on SimPy's clock.

At each instant the engine first applies all that ended, then starts what became ready in (job, rank,
stream, operation) order, again and again until neither is left: the order in which SimPy inserted its
events decides nothing that a user can see.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from cosim.engine.collectives import Collectives
from cosim.engine.desk import Desk, Release
from cosim.engine.environment import CoSimEnvironment
from cosim.engine.journal import Journal
from cosim.engine.ledger import Ledger, Reaction
from cosim.engine.messages import Messages
from cosim.engine.plans import Plans
from cosim.engine.programs import ReadyJob, ready_job
from cosim.engine.rank import Rank
from cosim.engine.records import JobInfo, Records
from cosim.engine.stall import waits
from cosim.errors import StallError
from cosim.network.flows import I64, Completions
from cosim.network.simulator import NetworkSimulator
from cosim.pattern.planner import Planner
from cosim.topology.graph import Topology
from cosim.units import format_time
from cosim.workload.program import OpKind

_PROGRESS_S = 0.2


@dataclass(frozen=True, slots=True)
class ProgressInfo:
    """How far a run is."""

    now_ps: int
    operations_done: int
    operations_total: int
    messages: int


def replay(
    topology: Topology,
    network: NetworkSimulator,
    jobs: Sequence[JobInfo],
    planner: Planner,
    *,
    release: Release = "network",
    seed: int = 0,
    record_messages: bool = False,
    progress: Callable[[ProgressInfo], None] | None = None,
) -> Records:
    """Run jobs to their end.

    Parameters
    ----------
    topology, network, jobs, planner
        Where, on what, what, and how. The network is fresh; it is closed at the end.
    release
        Who starts flows whose dependencies resolve: the network, or the engine. The times are the same.
    seed
        Given to the network.
    record_messages
        Keep every message (memory grows with their number).
    progress
        Called now and then.

    Returns
    -------
    Records
        All that happened; what happened until then, with ``interrupted`` set, after a KeyboardInterrupt.

    Raises
    ------
    StallError
        Nothing can happen any more, but ranks have not finished; lists who waits for whom.
    MismatchError
        Ranks disagree on what they do together.
    WorkloadError, AlgorithmError, UnreachableError, NetworkError
        As they say.
    """
    one = Replay(topology, network, jobs, planner, release, seed, record_messages, progress)
    try:
        return one.run()
    finally:
        one.close()


class Replay:
    """One run. ``environment`` is a SimPy environment: processes of one's own may join it before ``run``."""

    def __init__(
        self,
        topology: Topology,
        network: NetworkSimulator,
        jobs: Sequence[JobInfo],
        planner: Planner,
        release: Release = "network",
        seed: int = 0,
        record_messages: bool = False,
        progress: Callable[[ProgressInfo], None] | None = None,
    ) -> None:
        self._topology = topology
        self._network = network
        self._release: Release = release
        self._seed = seed
        self._progress = progress
        self._progress_at = 0.0
        self.environment = CoSimEnvironment(network, self._deliver, self._instant)
        self._ledger = Ledger(topology.num_endpoints, record_messages=record_messages)
        self._desk = Desk(self.environment.outbox, self._ledger, release)
        self._messages = Messages(self._desk, self._end)
        self._plans = Plans(planner)
        self._journal = Journal()
        self._collectives = Collectives(self._desk, self._plans, self._journal, self._end)
        self._folding = next((info.folding for info in jobs if info.folding is not None), None)
        self._jobs = [ready_job(number, info, topology) for number, info in enumerate(jobs)]
        self._ranks = [
            [Rank(job, rank) for rank in range(job.info.workload.world_size)] for job in self._jobs
        ]
        self._ends: dict[int, list[tuple[Rank, int, int]]] = {}
        self._reactions: dict[int, list[Reaction]] = {}
        self._starting: dict[int, list[ReadyJob]] = {}
        self._touched: dict[tuple[int, int], Rank] = {}
        self._total = sum(
            len(rank.program.operations) * job.info.iterations
            for job, ranks in zip(self._jobs, self._ranks, strict=True)
            for rank in ranks
        )

    def run(self) -> Records:
        """See :func:`replay`."""
        wall, cpu = time.perf_counter(), time.process_time()
        interrupted = ""
        try:
            folding = self._folding
            fabric = self._topology if folding is None else folding.folded_topology
            self._network.open(fabric, self._seed)
            for job in self._jobs:
                job.coflow_bytes = self._iteration_bytes(job)
                self._starting.setdefault(job.info.start_ps, []).append(job)
                self.environment.wake(job.info.start_ps)
            self.environment.run()
            self._check_finished()
        except KeyboardInterrupt:
            interrupted = f"interrupted at {format_time(int(self.environment.now))} of simulated time"
        except BaseException:
            self._network.close()
            raise
        records = self._records(interrupted, wall, cpu)
        if self._folding is not None:
            records = self._folding.unfold(records)
        self._network.close()
        return records

    def close(self) -> None:
        """Let go of the arrays now: callbacks make cycles that the garbage collector takes its time over."""
        del self.environment, self._network, self._ledger, self._desk, self._messages
        del self._ranks, self._collectives, self._ends, self._reactions

    # -- what happens --------------------------------------------------------------------------------

    def _deliver(self, completions: Completions) -> None:
        """Sort what the engine waits for into instants."""
        reaction = self._desk.take(completions)
        times = reaction.time_ps
        if not len(times):
            return
        if times[0] == times[-1] and (times == times[0]).all():  # as a rule
            now = int(times[0])
            self._reactions.setdefault(now, []).append(reaction)
            self.environment.wake(now)
            self._tell_progress()
            return
        order = np.argsort(times, kind="stable")
        ordered = times[order]
        cuts = np.flatnonzero(np.diff(ordered)) + 1
        for chosen in np.split(order, cuts):
            now = int(times[chosen[0]])
            part = Reaction(
                reaction.handle[chosen], reaction.index[chosen], times[chosen], reaction.cause_ps[chosen]
            )
            self._reactions.setdefault(now, []).append(part)
            self.environment.wake(now)
        self._tell_progress()

    def _instant(self, now: int) -> None:
        """One instant: all that ended, then all starts, until neither is left."""
        for job in self._starting.pop(now, ()):
            for rank in self._ranks[job.number]:
                self._begin(rank, now)
        for reaction in self._reactions.pop(now, ()):
            self._desk.react(reaction, now)
        while True:
            for rank, op, cause in self._ends.pop(now, ()):
                rank.cause_ps = max(rank.cause_ps, cause)
                self._apply_end(rank, op, now)
            if not self._touched:
                break
            touched, self._touched = self._touched, {}
            for _, rank in sorted(touched.items()):
                for op in rank.startable():
                    self._start(rank, op, now)
                rank.cause_ps = 0
        self._tell_progress()

    def _begin(self, rank: Rank, now: int) -> None:
        """Begin a rank's next iterations; an empty program ends as it begins."""
        while rank.begin():
            if rank.left:
                self._touched[rank.order] = rank
                return
            rank.iteration_ends.append(now)
            rank.finish_ps = now

    def _start(self, rank: Rank, op: int, now: int) -> None:
        rank.started[op] = now
        operation = rank.program.operations[op]
        kind = operation.kind
        if kind is OpKind.COMPUTE or kind is OpKind.MEMORY:
            end = now + rank.duration_ps(op)
            self._ends.setdefault(end, []).append((rank, op, now))
            if end > now:
                self.environment.wake(end)
            else:
                self._touched[rank.order] = rank
        elif kind is OpKind.COLLECTIVE:
            self._collectives.meet(rank, op, now)
        else:
            self._messages.post(rank, op, now)

    def _end(self, rank: Rank, op: int, cause: int) -> None:
        """An operation ends now, certain since ``cause``; applied with all else that ends now."""
        self._ends.setdefault(int(self.environment.now), []).append((rank, op, cause))
        self._touched[rank.order] = rank

    def _apply_end(self, rank: Rank, op: int, now: int) -> None:
        started = rank.end(op, now)
        self._journal.ended(rank.job.number, rank.iteration, rank.number, op, started, now)
        self._touched[rank.order] = rank
        if rank.left == 0:
            self._begin(rank, now)

    def _iteration_bytes(self, job: ReadyJob) -> int:
        """Bytes that one iteration of a job sends, over all its ranks; plans its collectives on the way."""
        total = 0
        program_of = job.info.workload.program_of
        for number, program in enumerate(job.programs):
            members = np.flatnonzero(program_of == number)
            if not len(members):
                continue
            mine, shares = 0.0, dict[tuple[object, ...], float]()
            for operation in program.operations:
                if operation.kind is OpKind.SEND:
                    mine += operation.size_bytes
                elif operation.kind is OpKind.COLLECTIVE:
                    what = operation.collective, operation.size_bytes, operation.root
                    key = *what, operation.axes, operation.ranks
                    if key not in shares:
                        group = job.group(int(members[0]), operation)
                        plan = self._plans.whole(operation, group)
                        shares[key] = plan.total_bytes / len(group.members)
                    mine += shares[key]
            total += round(mine * len(members) * job.info.copies)
        return total

    # -- the end -------------------------------------------------------------------------------------

    def _tell_progress(self) -> None:
        if self._progress is None or time.monotonic() - self._progress_at < _PROGRESS_S:
            return
        self._progress_at = time.monotonic()
        self._progress(
            ProgressInfo(
                int(self.environment.now),
                self._journal.num_operations,
                self._total,
                self._ledger.num_messages,
            )
        )

    def _check_finished(self) -> None:
        everyone = [rank for ranks in self._ranks for rank in ranks]
        stuck = [rank for rank in everyone if not rank.is_done]
        unmatched = list(self._messages.unmatched())
        if not stuck and not unmatched:
            return
        at = format_time(int(self.environment.now))
        if stuck:
            what = (
                f"nothing can happen after {at}, but {len(stuck)} of {len(everyone)} ranks have not finished"
            )
        else:
            what = f"every rank finished by {at}, but {len(unmatched)} messages were only posted at one end"
        raise StallError(what, waits(self._jobs, stuck, self._collectives.meetings, unmatched))

    def _records(self, interrupted: str, wall: float, cpu: float) -> Records:
        ops, sums = self._journal.operations()
        flows = [int(x) for x in self._ledger.digest]
        digest = "".join(f"{(a + b) % 2**64:016x}" for a, b in zip(flows, sums, strict=True))
        return Records(
            topology=self._topology,
            network=self._network.describe().name,
            release=self._release,
            seed=self._seed,
            jobs=tuple(job.info for job in self._jobs),
            ops=ops,
            collectives=self._journal.ended_collectives(),
            finish_ps=tuple(np.array([r.finish_ps for r in ranks], np.int64) for ranks in self._ranks),
            iteration_end_ps=tuple(_iteration_ends(ranks) for ranks in self._ranks),
            fct=self._ledger.fct(),
            traffic=self._ledger.traffic(),
            links=self._network.statistics(),
            num_messages=self._ledger.num_messages,
            end_ps=int(ops.end_ps.max(initial=0)),
            digest=digest,
            wall_s=time.perf_counter() - wall,
            cpu_s=time.process_time() - cpu,
            messages=self._ledger.messages(),
            interrupted=interrupted,
            info={"advances": self.environment.num_advances},
        )


def _iteration_ends(ranks: Sequence[Rank]) -> I64:
    """int64 [iterations that every rank ended] x [ranks]."""
    done = min((len(rank.iteration_ends) for rank in ranks), default=0)
    return np.array([rank.iteration_ends[:done] for rank in ranks], np.int64).reshape(len(ranks), done).T
