"""The replay: programs run on ranks, messages on the network, closed-loop, on SimPy's clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from simpy.events import Event, Process

from cosim.engine.accesses import access_table
from cosim.engine.operation_log import evenly
from cosim.engine.plans import Plans
from cosim.engine.programs import ReadyJob, ReadyProgram, ready_job
from cosim.engine.records import I64, JobInfo, MemoryNodes, ProgressInfo, Records
from cosim.engine.reference.clock import BEGINNING, Clock
from cosim.engine.reference.collectives import Collectives, Meeting
from cosim.engine.reference.directing import DirectedJobs
from cosim.engine.reference.flows import FlowsUnderWay
from cosim.engine.reference.messages import PostedMessages
from cosim.engine.reference.ranks import Precedence, Rank
from cosim.engine.reference.recorder import RunRecorder
from cosim.engine.reference.sampling import SampledSeries
from cosim.engine.reference.stalls import waits
from cosim.engine.reference.traffic import iteration_bytes
from cosim.errors import AlgorithmError, ScenarioError, SimulationError, StallError
from cosim.network.flows import Completions, FlowTable
from cosim.network.reference.releasing import PlainReleasing
from cosim.network.simulator import NetworkSimulator
from cosim.pattern.planner import Planner
from cosim.topology.graph import Topology
from cosim.units import NEVER, TOO_LATE, format_rate, format_size, format_time

if TYPE_CHECKING:
    from cosim.engine.directing import Director
    from cosim.engine.replay import Release
    from cosim.engine.series import Watched

_PROGRESS_S = 0.2  # of the wall's clock, between two that are told
_MOST_IN_VAIN = 100_000  # ranks that get slower or faster in a row with nothing done between them


def replay_reference(
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
    """Run jobs to their end. Parameters, result and errors are those of :func:`cosim.engine.replay.replay`.

    Whatever ``spill`` says, operations are kept in memory.

    Raises
    ------
    ScenarioError
        A job is folded: this engine simulates every rank.
    """
    del spill
    if any(one.folding is not None for one in jobs):
        raise ScenarioError("the reference engine doesn't fold jobs", hint="give it all ranks of them")
    series = None if watched is None else SampledSeries(watched, network, topology.num_endpoints)
    if release == "engine" or not network.describe().dependent_flows:
        network = PlainReleasing(network)
    run = ReferenceReplay(topology, network, jobs, planner, director, record_operations, series)
    return run.run(release, seed, record_messages, progress)


class ReferenceReplay:
    """One run. ``clock`` is a SimPy environment: processes of your own may join it before ``run``."""

    def __init__(
        self,
        topology: Topology,
        network: NetworkSimulator,
        jobs: Sequence[JobInfo],
        planner: Planner,
        director: Director | None = None,
        record_operations: int | None = None,
        series: SampledSeries | None = None,
        environment: Callable[[NetworkSimulator, Callable[[Completions], None]], Clock] = Clock,
    ) -> None:
        self._series = series
        self._topology = topology
        self._network = network
        self._release: Release = "network"
        self._seed = 0
        self._keeps, self._record_messages = record_operations, False
        worlds = [one.workload.world_size for one in jobs]
        self._kept = [evenly(world, record_operations) for world in worlds]
        self._total = sum(map(num_operations, jobs))
        self._steps: dict[ReadyProgram, Precedence] = {}
        self._accesses: dict[tuple[str, int], FlowTable] = {}
        self.recorder = RunRecorder(self._kept)
        self.flows = FlowsUnderWay(self.recorder)
        self.clock = self.flows.clock = environment(network, self._deliver)
        self.plans = Plans(planner)
        self.messages = PostedMessages(self)
        self.collectives = Collectives(self)
        self.free_at: dict[int, int] = {}
        """When each memory device will have served all who came."""
        self.jobs: list[ReadyJob] = []
        self.ranks: list[list[Rank]] = []
        for info in jobs:
            self._take_in(info)
        self.directing = None if director is None else DirectedJobs(director, self)
        self._progress: Callable[[ProgressInfo], None] | None = None
        self._told_at = 0.0

    def _take_in(self, info: JobInfo) -> ReadyJob:
        """One more job, and its ranks."""
        job, place = self._ready(len(self.jobs), info), sum(map(len, self.ranks))
        self.jobs.append(job)
        numbers = range(info.workload.world_size)
        self.ranks.append([self._rank(job, number, place + number) for number in numbers])
        return job

    def _ready(self, number: int, info: JobInfo) -> ReadyJob:
        info = replace(info, on_units=self._network.describe().computations)
        return ready_job(number, info, self._topology)

    def _rank(self, job: ReadyJob, number: int, place: int) -> Rank:
        return Rank(self, job, number, place)

    def run(
        self,
        release: Release = "network",
        seed: int = 0,
        record_messages: bool = False,
        progress: Callable[[ProgressInfo], None] | None = None,
    ) -> Records:
        """See :func:`replay_reference`."""
        interrupted = ""
        self.set_up(release, seed, record_messages, progress)
        try:
            self.begin()
            self.clock.run()
            self.check_finished()
        except KeyboardInterrupt:
            interrupted = self.interruption()
        except BaseException:
            self._network.close()
            raise
        records = self.records(interrupted)
        self._network.close()
        return records

    def set_up(
        self,
        release: Release,
        seed: int,
        record_messages: bool,
        progress: Callable[[ProgressInfo], None] | None,
    ) -> None:
        """Say what else a run goes by."""
        self._release, self._seed, self._record_messages = release, seed, record_messages
        self._progress = progress

    def begin(self) -> None:
        """Open the network, and have jobs begin when their time comes."""
        self._began = time.perf_counter(), time.process_time()
        self._network.open(self._topology, self._seed)
        self._expect_jobs()

    def interruption(self) -> str:
        """What is said of a run that a KeyboardInterrupt ended."""
        return f"interrupted at {format_time(self.clock.now_ps)} of simulated time"

    def close_network(self) -> None:
        """Have the network let go of everything."""
        self._network.close()

    # -- jobs ----------------------------------------------------------------------------------------

    def _expect_jobs(self) -> None:
        """Have jobs begin, or arrive where somebody directs them, when their time comes."""
        self._expect([job for job in self.jobs if not job.info.driven])
        if self._series is not None:
            Process(self.clock, self._series.live(self))

    def _expect(self, jobs: Sequence[ReadyJob]) -> None:
        for start_ps, arriving in groupby(
            sorted(jobs, key=lambda job: job.info.start_ps), lambda job: job.info.start_ps
        ):
            Process(self.clock, self._arrive(start_ps, [*arriving]))
        for job in jobs:
            if self.directing is None:
                job.coflow_bytes = iteration_bytes(job, self.plans)
            Process(self.clock, self._slow_down(job))

    def _arrive(self, start_ps: int, jobs: list[ReadyJob]) -> Generator[Event, None, None]:
        yield self.clock.due(start_ps, BEGINNING)
        if self.directing is not None:
            self.directing.arrive(jobs)
            return
        for job in jobs:
            self.begin_job(job)

    def begin_job(self, job: ReadyJob) -> None:
        """A job's ranks begin."""
        if self.directing is not None:
            job.coflow_bytes = iteration_bytes(job, self.plans)
        for rank in self.ranks[job.number]:
            rank.go_on()

    def _slow_down(self, job: ReadyJob) -> Generator[Event, None, None]:
        """Ranks of a job get slower and faster, while there is something to do."""
        in_vain, done = 0, 0
        for one in job.info.slowdowns:
            in_vain = in_vain + 1 if done == self.recorder.num_operations else 0
            done = self.recorder.num_operations
            if self.is_done or in_vain > _MOST_IN_VAIN:
                return
            yield self.clock.due(one.time_ps, BEGINNING)
            self.ranks[job.number][one.rank].slow_down(one.millionths)

    @property
    def is_done(self) -> bool:
        """Whether all operations have ended."""
        return self.recorder.num_operations >= self._total

    def iteration_ended(self, job: ReadyJob) -> None:
        """A rank of a job has ended an iteration."""

    def carrier_waits(self, meeting: Meeting, position: int) -> None:
        """A rank has come to a collective that code carries.

        Raises
        ------
        AlgorithmError
            There is no code beside this run.
        """
        raise AlgorithmError(f"nobody carries {meeting.title()}, where rank {position} waits")

    def most_iterations(self, job: ReadyJob) -> int:
        """How many iterations of a job may begin."""
        return job.info.iterations

    # -- what others ask for -------------------------------------------------------------------------

    def steps_of(self, program: ReadyProgram) -> Precedence:
        """What a program's operations wait for."""
        if program not in self._steps:
            self._steps[program] = Precedence(program)
        return self._steps[program]

    def access_table(self, access: str, size_bytes: int, nodes: MemoryNodes) -> FlowTable:
        """The two messages of an access to a memory node."""
        if (access, size_bytes) not in self._accesses:
            self._accesses[access, size_bytes] = access_table(access, size_bytes, nodes)
        return self._accesses[access, size_bytes]

    def _deliver(self, done: Completions) -> None:
        self.flows.deliver(done)
        if self._progress is not None and time.monotonic() - self._told_at >= _PROGRESS_S:
            self._told_at = time.monotonic()
            recorder = self.recorder
            counts = self.clock.now_ps, recorder.num_operations, self._total, recorder.num_messages
            self._progress(ProgressInfo(*counts))

    # -- the end -------------------------------------------------------------------------------------

    def check_finished(self, more: Callable[[], Sequence[str]] = tuple) -> None:
        """See that nobody waits, of the ranks or of whom ``more`` says.

        Raises
        ------
        StallError
            Lists who waits for whom.
        """
        ranks = [rank for job in self.ranks for rank in job]
        stuck = [
            rank for rank in ranks if not rank.is_through and rank.oldest < self.most_iterations(rank.job)
        ]
        alone, others = sum(1 for _ in self.messages.unmatched()), more()
        if not stuck and not alone and not others:
            return
        at = format_time(self.clock.now_ps)
        self._check_room()
        if others and not stuck:
            what = f"nothing can happen after {at}, but processes wait"
        elif stuck:
            what = f"nothing can happen after {at}, but {len(stuck)} of {len(ranks)} ranks have not finished"
        else:
            what = f"every rank finished by {at}, but {alone} messages were only posted at one end"
        raise StallError(what, [*others, *waits(self, stuck)])

    def _check_room(self) -> None:
        """Whether a run that stands still only waits for what comes later than times go."""
        sizes = [int(job.info.workload.table.size_bytes.max(initial=0)) for job in self.jobs]
        largest, slowest = max(sizes, default=0), float(self._topology.link_rate_bps.min(initial=np.inf))
        if self.clock.now_ps + largest * 8e12 / slowest >= NEVER:
            slow = f"{format_size(largest)} over a link of {format_rate(slowest)}"
            raise SimulationError(f"{TOO_LATE}: there is {slow}")

    def _info(self, job: ReadyJob) -> JobInfo:
        return job.info

    def records(self, interrupted: str = "") -> Records:
        """What happened so far."""
        wall_s, cpu_s = self._began
        recorder, network = self.recorder, self._network
        worlds = [job.info.workload.world_size for job in self.jobs]
        advances = network.num_advances if isinstance(network, PlainReleasing) else self.clock.num_advances
        return Records(
            topology=self._topology,
            network=network.describe().name,
            release=self._release,
            seed=self._seed,
            jobs=tuple(map(self._info, self.jobs)),
            ops=recorder.operations(),
            collectives=recorder.collectives(),
            finish_ps=tuple(np.array([rank.finish_ps for rank in job], np.int64) for job in self.ranks),
            iteration_end_ps=tuple(map(_iteration_ends, self.jobs, self.ranks)),
            fct=recorder.fct(),
            traffic=recorder.traffic(),
            links=network.statistics(),
            num_messages=recorder.num_messages,
            end_ps=recorder.end_ps,
            digest=recorder.digest(),
            wall_s=time.perf_counter() - wall_s,
            cpu_s=time.process_time() - cpu_s,
            messages=recorder.messages() if self._record_messages else None,
            interrupted=interrupted,
            series=None if self._series is None else self._series.series(recorder.end_ps),
            recorded=None if [*map(len, self._kept)] == worlds else tuple(self._kept),
            info={"advances": advances},
        )


def _iteration_ends(job: ReadyJob, ranks: list[Rank]) -> I64:
    """int64 [iterations that every rank ended] x [ranks]."""
    if job.info.driven:  # all that it does is one iteration
        return np.array([[max(rank.finish_ps, job.info.start_ps) for rank in ranks]], np.int64)
    done = min((rank.oldest for rank in ranks), default=job.info.iterations)
    return np.array([rank.ends_ps[:done] for rank in ranks], np.int64).reshape(len(ranks), done).T.copy()


def num_operations(info: JobInfo) -> int:
    """How many operations all ranks of a job have, over all iterations."""
    lengths = np.diff(info.workload.table.first)
    return int(lengths[info.workload.program_of].sum()) * info.iterations
