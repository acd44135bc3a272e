"""The replay: programs run on ranks, messages on the network, closed-loop, on SimPy's clock.

At each instant the engine first applies all that ended, then starts what became ready in (job, rank,
stream, operation) order, again and again until neither is left: the order in which SimPy inserted its
events decides nothing that a user can see.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from simpy.core import Infinity

from cosim.engine.collective_records import CollectiveRecords
from cosim.engine.columns import NONE
from cosim.engine.driven import DrivenJob, IssuedPrograms, RankDriver
from cosim.engine.engine import Engine
from cosim.engine.environment import CoSimEnvironment
from cosim.engine.operation_log import OperationLog, evenly, marked
from cosim.engine.programs import ReadyJob, check_job, ready_job
from cosim.engine.records import JobInfo, Records, Slowdown
from cosim.engine.stall import unmatched, waits
from cosim.errors import SimulationError, StallError
from cosim.fabric.detours import MOST_IN_VAIN
from cosim.network.compiled import CompiledNetwork
from cosim.network.flows import I64
from cosim.network.simulator import NetworkSimulator
from cosim.pattern.planner import Planner
from cosim.topology.graph import Topology
from cosim.units import NEVER, TOO_LATE, format_rate, format_size, format_time
from cosim.workload.program import Operation, OpKind

if TYPE_CHECKING:
    from cosim.engine.directing import Directing, Director, JobOrder
    from cosim.engine.live import MetCollective, Told
    from cosim.engine.records import ProgressInfo
    from cosim.engine.releasing import ReleasingNetwork
    from cosim.engine.series import SeriesLog, Watched
    from cosim.engine.under_way import Waiting

Release = Literal["network", "engine"]
"""Who starts flows whose dependencies resolve."""
_PROGRESS_S = 0.2  # of the wall's clock, between two that are told


def replay(
    topology: Topology,
    network: NetworkSimulator,
    jobs: Sequence[JobInfo],
    planner: Planner,
    *,
    release: Release = "network",
    seed: int = 0,
    record_messages: bool = False,
    record_operations: int | None = None,
    progress: Callable[[ProgressInfo], None] | None = None,
    director: Director | None = None,
    watched: Watched | None = None,
    spill: Path | None = None,
) -> Records:
    """Run jobs to their end.

    Parameters
    ----------
    topology, network, jobs, planner
        Where, on what, what, and how. The network is fresh; it is closed at the end.
    release
        Who starts flows whose dependencies resolve: the network, or the engine (which does so anyway where
        the network says that it can't). The times are the same.
    seed
        Given to the network.
    record_messages
        Keep every message (memory grows with their number).
    record_operations
        Of how many ranks of each job operations are kept, evenly spread; None: of all.
    progress
        Called now and then.
    watched
        Queues and rates that are looked at over time; None: none.
    spill
        A folder: operations that ended are kept in a file there; None: in memory.
    director
        Says where and when jobs begin, which only arrive at their start; None: there and then.

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
    ScenarioError
        ``spill`` can't be written to, or is full.
    WorkloadError, AlgorithmError, UnreachableError, NetworkError
        As they say.
    """
    one = Replay(
        topology,
        network,
        jobs,
        planner,
        release,
        seed,
        record_messages,
        record_operations,
        progress,
        director,
        watched,
        spill,
    )
    try:
        return one.run()
    finally:
        one.close()


class Replay:
    """One run. ``environment`` is a SimPy environment: processes of your own may join it before ``run``."""

    def __init__(
        self,
        topology: Topology,
        network: NetworkSimulator,
        jobs: Sequence[JobInfo],
        planner: Planner,
        release: Release = "network",
        seed: int = 0,
        record_messages: bool = False,
        record_operations: int | None = None,
        progress: Callable[[ProgressInfo], None] | None = None,
        director: Director | None = None,
        watched: Watched | None = None,
        spill: Path | None = None,
        environment: Callable[[Callable[[int], None], Callable[[int, bool], int]], CoSimEnvironment] = (
            CoSimEnvironment
        ),
    ) -> None:
        self._topology = topology
        self.network = network
        """The network itself."""
        self._series: SeriesLog | None = None
        if watched is not None:
            from cosim.engine.series import SeriesLog

            self._series = SeriesLog(watched, network, topology.num_endpoints)
        self._releasing: ReleasingNetwork | None = None
        if release == "engine" or not network.describe().dependent_flows:
            from cosim.engine.releasing import ReleasingNetwork

            network = self._releasing = ReleasingNetwork(network)
        self._network = network
        self._on_units = network.describe().computations
        self._release: Release = release
        self._seed = seed
        self._progress = progress
        self._progress_at = 0.0
        self.environment = environment(self._instant, self._go_on)
        self.driver = RankDriver()
        self._folding = next((info.folding for info in jobs if info.folding is not None), None)
        self._jobs = [self._ready(number, info) for number, info in enumerate(jobs)]
        worlds = [info.workload.world_size for info in jobs]
        self._keeps = record_operations
        self._kept = [evenly(world, record_operations) for world in worlds]
        self._total = sum(_num_operations(info, np.arange(info.workload.world_size)) for info in jobs)
        self._engine = Engine(self._jobs, planner, record_messages=record_messages)
        self._jobs = self._engine.jobs
        self.driver.join(self._engine)
        self._engine.instant = self._now
        self._directing: Directing | None = None
        if director is not None:
            from cosim.engine.directing import Directing

            self._directing = Directing(director, self._engine, self._jobs, self._count_bytes)
        kept = sum(map(_num_operations, jobs, self._kept))
        grows = any(info.driven for info in jobs)
        self._operations = OperationLog(worlds, kept, spill, grows=grows)
        self._engine.columns.put(is_kept=marked(worlds, self._kept))
        self._engine.columns.on_operations = self._operations.take
        self._starting: dict[int, list[ReadyJob]] = {}
        self._slowing: dict[int, list[tuple[int, Slowdown]]] = {}
        self._slowdowns = [iter(one.info.slowdowns) for one in self._jobs]
        self._done_before = self._in_vain = 0
        self._seen = (-1, -1)
        self._because = ""

    def run(self) -> Records:
        """See :func:`replay`."""
        interrupted = ""
        try:
            self.begin()
            self._because = self._why_simulated()
            if not self._because and self._engine.asked is None:
                self._engine.repeat()
            self.environment.run()
            self.check_finished()
        except KeyboardInterrupt:
            interrupted = self.interruption()
        except BaseException:
            self._network.close()
            raise
        records = self.records(interrupted)
        self._network.close()
        return records

    def begin(self) -> None:
        """Open the network, and have jobs begin when their time comes."""
        self._began = time.perf_counter(), time.process_time()
        folding = self._folding
        fabric = self._topology if folding is None else folding.folded_topology
        self._network.open(fabric, self._seed)
        self._engine.connect(self._network)
        for job in self._jobs:
            self._expect(job)
        if self._series is not None:
            self.environment.wake(0)

    def _why_simulated(self) -> str:
        """Why no iteration may be taken from an earlier one; empty: some may."""
        network = self._network
        if any(job.info.pace is not None for job in self._jobs):
            return "ranks take their own times for it"
        delays = self._directing is not None and self._directing.delays
        if delays or any(job.info.driven for job in self._jobs):
            return "somebody else says when it begins"
        if not isinstance(network, CompiledNetwork) or network.repeated == NONE:
            return "states of its network are not compared"
        return ""

    def _expect(self, job: ReadyJob) -> None:
        if self._directing is None:
            self._count_bytes(job)
        if job.info.driven:
            return
        self._starting.setdefault(job.info.start_ps, []).append(job)
        self.environment.wake(job.info.start_ps)
        self._expect_slowdown(job.number)

    def _ready(self, number: int, info: JobInfo) -> ReadyJob:
        info = replace(info, on_units=self._on_units)
        if info.driven:
            check_job(number, info, self._topology)
            programs = IssuedPrograms(self.driver, number, len(info.endpoints))
            return DrivenJob(number, info, self._topology, programs)
        return ready_job(number, info, self._topology)

    def add(self, info: JobInfo) -> int:
        """Have one more job take part, from its start on, which is not before now: its number."""
        job = self._ready(len(self._jobs), info)
        world = info.workload.world_size
        kept = evenly(world, self._keeps)
        self._kept.append(kept)
        self._total += _num_operations(info, np.arange(world))
        self._operations.add(world)
        self._engine.add(job)
        self._engine.columns.put(is_kept=marked(self._worlds(), self._kept))
        self._slowdowns.append(iter(info.slowdowns))
        if info.driven or info.start_ps > self.environment.now_ps:
            self._expect(job)
        else:
            self._count_bytes(job)
            self._engine.begin(job.number, info.start_ps)
        return job.number

    @property
    def engine(self) -> Engine:
        """The engine."""
        return self._engine

    @property
    def now_ps(self) -> int:
        """The time."""
        return self.environment.now_ps

    @property
    def jobs(self) -> Sequence[ReadyJob]:
        """All jobs so far."""
        return self._engine.jobs

    def tell(self, whom: Told) -> None:
        """Tell somebody what ends, before anything starts that follows from it."""

        def told(rows: NDArray[Any]) -> None:
            self.environment.pass_to(self._engine.now_ps)
            tickets = rows["ticket"].tolist()
            found = [ticket for ticket in tickets if ticket >= 0]
            if len(found) == len(tickets):
                whom(found, (), ())
                return
            came = rows[rows["met"] >= 0]
            whom(
                found,
                {*rows["job"].tolist()},
                zip(came["met"].tolist(), came["position"].tolist(), strict=True),
            )

        self._engine.on_told = told
        self._engine.groups.carries = True
        self._engine.columns.scalars["may_go_on"] = 1

    def met(self, number: int) -> MetCollective:
        """A rendezvous that code carries."""
        engine = self._engine
        row = engine.columns.rendezvous[number]
        comm = engine.groups.comms[int(row["comm"])]
        plan = engine.groups.planned[int(row["plan"])].plan
        _, operation = engine.numbered(int(row["rank"]), int(row["op"]))
        from cosim.engine.live import MetCollective

        return MetCollective(operation, plan, comm.job, int(row["iteration"]), comm.group)

    def leave_carried(self, met: int, position: int, messages: int, *, is_last: bool) -> None:
        """A rank is done now with a rendezvous that code carries, which has sent so many messages."""
        if is_last:
            self._engine.groups.count_carried(met, messages)
        self._engine.leave_carried(met, position, messages)

    def watch(self, number: int) -> None:
        """Tell from now on when an iteration of a job's rank ends."""
        self._engine.columns.jobs["watched"][number] = 1

    def iterations_done(self, number: int) -> int:
        """Iterations that every rank of a job has ended."""
        return int(self._engine.rows(number)["oldest"].min())

    def waits_for(self, number: int, rank: int) -> list[Waiting]:
        """What a rank of a job with programs has under way, by when it began."""
        from cosim.engine.under_way import under_way

        return under_way(self._engine, number, rank)

    def issued(self, number: int, rank: int) -> int:
        """How many operations a driven rank was given."""
        self.driver.issue()
        return int(self._engine.rows(number)["issued"][rank])

    def slowness(self, number: int, rank: int) -> int:
        """How much longer a rank computes now, in millionths."""
        return self._engine.slowness(self._engine.tables.rank0[number] + rank)

    def done(self) -> tuple[int, int]:
        """Operations that ended and messages that arrived."""
        return self._engine.ops_done, self._engine.flow_log.num_messages

    def is_idle(self) -> bool:
        """Whether nothing is to come of which the time is known."""
        return self._engine.next_ps >= NEVER

    def order(self, order: JobOrder) -> None:
        """Have a job do as it is ordered from now on; begin, only where somebody directs jobs."""
        if self._directing is not None and order.endpoints is not None:
            self._directing.carry_out([order], self._now())
            return
        from cosim.engine.directing import tell

        tell(self._engine, self._jobs[order.job], order)
        if order.channel is not None:
            self._engine.bind_anew(order.job)

    def pause(self, number: int) -> int:
        """Have a job's ranks begin no iteration that none of them has begun: how many those are."""
        begun = int(self._engine.rows(number)["iteration"].max()) + 1
        self._engine.columns.jobs["iterations"][number] = begun
        return begun

    def resume(self, number: int, *, begins: bool) -> None:
        """Have a job that was paused go on now; ``begins``: unless its start is to come."""
        info, now = self._jobs[number].info, self._now()
        self._engine.columns.jobs["iterations"][number] = info.iterations
        if begins and info.start_ps <= now:
            self._engine.begin(number, now)

    def shorten(self, number: int, iterations: int) -> None:
        """Have a job be over after fewer iterations, of which none is less than those begun."""
        job = self._jobs[number]
        less = max(0, job.info.iterations - iterations)
        ranks = np.arange(job.info.workload.world_size)
        self._total -= _num_operations(replace(job.info, iterations=less), ranks)
        job.info = replace(job.info, iterations=iterations)
        self._engine.columns.jobs["iterations"][number] = iterations

    def interruption(self) -> str:
        """What is said of a run that a KeyboardInterrupt ended."""
        return f"interrupted at {format_time(self._now())} of simulated time"

    def _now(self) -> int:
        return self.environment.now_ps

    def close_network(self) -> None:
        """Have the network let go of everything."""
        self._network.close()

    def close(self) -> None:
        """Let go of the arrays now: callbacks make cycles that the garbage collector takes its time over."""
        self._engine.disconnect()
        self._operations.close()
        del self.environment, self._network, self.network, self._engine, self.driver

    # -- what happens --------------------------------------------------------------------------------

    def _instant(self, now: int) -> None:
        """Before engine and network run this instant: what begins in it, changes, or is looked at."""
        if self._series is not None and self._series.due_ps == now:
            self._look_at_network(self._series, now)
        # All of this instant before any rank begins: each brings the job's next, which may be due now, too.
        while due := self._slowing.pop(now, None):
            for number, slowdown in due:
                self._engine.slow_down(number, slowdown.rank, slowdown.millionths)
                self._expect_slowdown(number)
        starting = self._starting.pop(now, [])
        if self._directing is not None and starting:
            self._directing.arrive(starting, now)
        elif self._directing is None:
            for job in starting:
                self._engine.begin(job.number, now)

    def _look_at_network(self, series: SeriesLog, now: int) -> None:
        """Take a sample, and wake for the next one while anything may still happen."""
        series.take(now)
        done = self._engine.ops_done, self._engine.flow_log.num_messages
        comes = self._engine.next_ps < NEVER or self.environment.peek() != Infinity
        moved, self._seen = done != self._seen, done
        waits = series.has_work() or self._engine.has_to_send
        if done[0] < self._total and (comes or moved or waits) and series.due_ps < NEVER:
            self.environment.wake(series.due_ps)

    def _expect_slowdown(self, job: int) -> None:
        """Wake when a rank of a job gets slower or faster next, while there is something to do."""
        done = self._engine.ops_done
        self._in_vain = self._in_vain + 1 if done == self._done_before else 0
        self._done_before = done
        if done < self._total and self._in_vain < MOST_IN_VAIN:
            for one in islice(self._slowdowns[job], 1):
                self._slowing.setdefault(one.time_ps, []).append((job, one))
                self.environment.wake(one.time_ps)

    def _go_on(self, horizon: int, hold: bool) -> int:
        """Engine and network up to SimPy's next time, of which they end what ends in it: to hold."""
        engine, environment = self._engine, self.environment
        self.driver.issue()
        engine.hold_at(horizon if hold and horizon < NEVER else NONE)
        while True:
            for _ in engine.run(horizon - 1):
                environment.pass_to(engine.now_ps)
                self._tell_progress()
            environment.pass_to(engine.now_ps)
            if self._progress is not None:
                self._tell_progress()
            # Where nobody waits for what ended, it goes on.
            if not engine.has_told or environment.has_events_now:
                return engine.granted_ps

    def _count_bytes(self, job: ReadyJob) -> None:
        job.coflow_bytes = self._iteration_bytes(job)

    def _iteration_bytes(self, job: ReadyJob) -> int:
        """Bytes that one iteration of a job sends, over all its ranks; plans its collectives on the way."""
        workload = job.info.workload
        table = workload.table
        ranks = np.bincount(workload.program_of, minlength=table.num_programs)
        by_access = job.info.memory_nodes is not None
        sends = [one.kind is OpKind.SEND or (one.access != "" and by_access) for one in table.prototypes]
        sent = np.where(np.array(sends, np.bool_)[table.like], table.size_bytes, 0).astype(np.float64)
        if any(one.kind is OpKind.COLLECTIVE for one in table.prototypes):
            talking = np.unique(table.program[table.is_kind(OpKind.COLLECTIVE)])
            for number in talking[ranks[talking] > 0].tolist():
                member = int((workload.program_of == number).argmax())
                mine = job.programs[number].collectives
                shares = np.array([self._bytes_of_rank(job, one, member) for one in mine.kinds])
                sent[table.first[number] + mine.at] = shares[mine.kind]
        each = np.bincount(table.program, sent, table.num_programs)
        return sum(map(round, (each * ranks * job.info.copies).tolist()))

    def _bytes_of_rank(self, job: ReadyJob, collective: Operation, member: int) -> float:
        """Bytes that a rank sends in a collective: its share."""
        group = job.group(member, collective)
        return self._engine.plans.whole(collective, group).total_bytes / len(group.members)

    # -- the end -------------------------------------------------------------------------------------

    def _tell_progress(self) -> None:
        if self._progress is None or time.monotonic() - self._progress_at < _PROGRESS_S:
            return
        self._progress_at = time.monotonic()
        from cosim.engine.records import ProgressInfo

        self._progress(
            ProgressInfo(
                self._now(),
                self._engine.ops_done,
                self._total,
                self._engine.flow_log.num_messages,
            )
        )

    def check_finished(self, more: Callable[[], Sequence[str]] = tuple) -> None:
        """See that nobody waits, of the engine's own or of whom ``more`` says.

        Raises
        ------
        StallError
            Lists who waits for whom.
        """
        ranks = self._engine.columns.ranks[: self._engine.columns.used("ranks")]
        iterations = self._engine.columns.jobs["iterations"][ranks["job"]]
        stuck = np.flatnonzero(ranks["oldest"] < iterations)
        alone, others = list(unmatched(self._engine)), more()
        if not len(stuck) and not alone and not others:
            return
        at = format_time(self._now())
        self._check_room()
        if others and not len(stuck):
            what = f"nothing can happen after {at}, but processes wait"
        elif len(stuck):
            what = f"nothing can happen after {at}, but {len(stuck)} of {len(ranks)} ranks have not finished"
        else:
            what = f"every rank finished by {at}, but {len(alone)} messages were only posted at one end"
        raise StallError(what, [*others, *waits(self._engine, stuck.tolist(), alone)])

    def _check_room(self) -> None:
        """Refuse to go on with a run that only waits for what comes later than times go."""
        sizes = [int(job.info.workload.table.size_bytes.max(initial=0)) for job in self._jobs]
        largest, slowest = max(sizes, default=0), float(self._topology.link_rate_bps.min(initial=np.inf))
        # Its headers, and a round trip before it, take their time, too.
        if self._now() + 2 * largest * 8e12 / slowest >= NEVER:
            slow = f"{format_size(largest)} over a link of {format_rate(slowest)}"
            raise SimulationError(f"{TOO_LATE}: there is {slow}")

    def records(self, interrupted: str = "") -> Records:
        """What happened so far."""
        records = self._records(interrupted, *self._began)
        return records if self._folding is None else self._folding.unfold(records)

    def _records(self, interrupted: str, wall: float, cpu: float) -> Records:
        engine = self._engine
        end_ps = int(engine.columns.scalars["last_end"])
        ops = self._operations.records(engine.columns.last_operations())
        sums = zip(engine.columns.scalars["digest"], engine.columns.scalars["op_digest"], strict=True)
        digest = "".join(f"{(int(a) + int(b)) % 2**64:016x}" for a, b in sums)
        return Records(
            topology=self._topology,
            network=self._network.describe().name,
            release=self._release,
            seed=self._seed,
            jobs=tuple(self.driver.made(job) if job.info.driven else job.info for job in self._jobs),
            ops=ops,
            collectives=CollectiveRecords.of(engine),
            finish_ps=tuple(self._engine.rows(job.number)["finish"].copy() for job in self._jobs),
            iteration_end_ps=tuple(self._iteration_ends(job) for job in self._jobs),
            fct=engine.flow_log.fct(),
            traffic=engine.flow_log.traffic(),
            links=self._network.statistics(),
            num_messages=engine.flow_log.num_messages,
            end_ps=end_ps,
            digest=digest,
            wall_s=time.perf_counter() - wall,
            cpu_s=time.process_time() - cpu,
            messages=engine.flow_log.messages(),
            interrupted=interrupted,
            recorded=self._recorded(),
            series=None if self._series is None else self._series.series(end_ps),
            info={
                "advances": self._num_advances(),
                "repeated": engine.repeated(),
                "simulated_because": self._because,
            },
        )

    def _recorded(self) -> tuple[I64, ...] | None:
        """The ranks of each job whose operations were kept; None: all."""
        return None if [*map(len, self._kept)] == self._worlds() else tuple(self._kept)

    def _worlds(self) -> list[int]:
        """How many ranks each job has."""
        return [job.info.workload.world_size for job in self._jobs]

    def _num_advances(self) -> int:
        """How often the network itself was asked."""
        return self._engine.num_advances if self._releasing is None else self._releasing.num_advances

    def _iteration_ends(self, job: ReadyJob) -> I64:
        """int64 [iterations that every rank ended] x [ranks]."""
        ranks = self._engine.rows(job.number)
        if job.info.driven:  # all that it does is one iteration
            ended: I64 = np.maximum(ranks["finish"], job.info.start_ps).astype(np.int64)
            return ended.reshape(1, -1)
        done = int(ranks["oldest"].min(initial=job.info.iterations))
        first = int(self._engine.columns.jobs["end0"][job.number])
        ends = self._engine.columns.iteration_ends[first : first + done * len(ranks)]
        return np.array(ends.reshape(done, len(ranks)), np.int64)


def _num_operations(info: JobInfo, ranks: I64) -> int:
    """How many operations ranks of a job have, over all iterations."""
    workload = info.workload
    return int(np.diff(workload.table.first)[workload.program_of[ranks]].sum()) * info.iterations
