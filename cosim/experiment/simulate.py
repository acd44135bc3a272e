"""One scenario, simulated: its run."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from cosim.errors import AlgorithmError, ScenarioError, SchedulerError, StallError, WorkloadError
from cosim.experiment.progress import OnProgress, RunProgress
from cosim.plugin_file import plugin_errors
from cosim.results.tables import RunTables
from cosim.units import format_time

if TYPE_CHECKING:
    from cosim.cluster.sharing import Cluster
    from cosim.doubts import Doubt
    from cosim.engine.records import JobInfo, ProgressInfo, Records
    from cosim.engine.series import Watched
    from cosim.experiment.build import Built
    from cosim.experiment.engines import EngineName
    from cosim.experiment.scenario import Scenario
    from cosim.experiment.studies.contract import Study
    from cosim.network.simulator import NetworkSimulator
    from cosim.pattern.planner import Planner
    from cosim.results.alone import JobsAlone
    from cosim.results.matrices import TrafficMatrix
    from cosim.results.render.page import Page
    from cosim.results.report.document import RunReport
    from cosim.results.stored_run import StoredRun
    from cosim.results.study import StudyResult
    from cosim.results.summary import Summary
    from cosim.topology.graph import Topology

_log = logging.getLogger("cosim")


@dataclass(eq=False, repr=False)
class Run(RunTables):
    """A scenario and what came of it, as :func:`cosim.run` returns it.

    It prints as the page of ``cosim run``, and shows itself in a notebook.

    Attributes
    ----------
    scenario
        As it was run, with its settings.
    records
        What the engine wrote down: columns of operations, links, traffic ...
    warnings
        Settings that could not affect the result, with their places.
    doubts
        What can make the answer wrong by more than its interval.
    studies
        What :meth:`study` found of it, by name: its page and its report show it.
    interrupted
        Empty, or why not all that was asked for is there.

    Examples
    --------
    >>> import cosim
    >>> run = cosim.run('''
    ... topology: {kind: ring, endpoints: 4, rate: 80Gbps, latency: 0ns}
    ... network: congestion_aware
    ... jobs: [{workload: {kind: collective, collective: all_reduce, ranks: 4, size: 4MB}, iterations: 2}]
    ... ''')
    >>> run.summary.jobs[0].iteration_ps
    (600000000, 600000000)
    >>> run.operations.end_ps[-1]
    np.int64(1200000000)
    >>> run.links.sent_bytes.sum() == 2 * 4 * 6 * 10**6  # 2 iterations, 4 ranks, 6 steps
    np.True_
    """

    scenario: Scenario
    records: Records
    warnings: tuple[str, ...] = ()
    doubts: tuple[Doubt, ...] = ()
    studies: dict[str, StudyResult] = field(default_factory=dict)
    interrupted: str = ""

    @cached_property
    def summary(self) -> Summary:
        """Iteration times, exposed communication, busy links ... in one object."""
        from cosim.results.summary import summarize

        return summarize(self.records, name=self.scenario.name, warnings=self.warnings, doubts=self.doubts)

    @property
    def digest(self) -> str:
        """A hex string over every completion and every operation's start and end."""
        return self.records.digest

    @property
    def settings(self) -> Any:
        """The scenario as plain values, settings applied; None for one that YAML can't say."""
        try:
            return self.scenario.as_written()
        except ScenarioError:
            return None

    @property
    def alone(self) -> Mapping[str, float] | None:
        """Mean iteration of each job by itself, picoseconds; None before ``study("alone")``."""
        found = self.studies.get("alone")
        return None if found is None else cast("JobsAlone", found).times

    def study(self, study: Study | Mapping[str, Any] | str, **given: Any) -> Any:
        """Do a study of this run's scenario, as :func:`cosim.study` does, without running it again.

        Its page, JSON and report show what was found.
        """
        from cosim.experiment.mistakes import find_named
        from cosim.experiment.studies.contract import Study
        from cosim.experiment.studies.perform import study as perform
        from cosim.registry import name_of

        asked = find_named("cosim.studies", Study, study)
        found = perform(asked, self, **given)
        self.studies[name_of("cosim.studies", type(asked)) or type(asked).__name__] = found
        return found

    def traffic_matrix(self, job: int = 0, *, over_time: bool = True) -> TrafficMatrix:
        """Bytes from rank to rank of a job, int64[bins, ranks, ranks]; one bin unless ``over_time``."""
        from cosim.results.matrices import traffic_matrix

        return traffic_matrix(self.records.traffic, self.records.jobs[job], over_time=over_time)

    def measure(self, name: str, cost: Mapping[str, Any] | None = None) -> float:
        """One number of the run: any measure of `cosim list sweep`, as sweeps and searches have it.

        Parameters
        ----------
        name
            ``"price"``, ``"tokens_per_s"`` ...
        cost
            What parts cost and draw, over the table that comes with cosim.

        Raises
        ------
        InputError
            There is no such measure, or it isn't known of this run.
        """
        from cosim.experiment.facts import measured

        return measured([name], self.scenario, self.summary, self.alone, cost)[name]

    def save(self, directory: str | Path, *, overwrite: bool = False) -> Path:
        """Write summary, columns, timeline, the scenario as resolved, and the messages if recorded.

        Raises
        ------
        InputError
            The folder can't be written, another run writes to it, or it holds files of these names that
            cosim did not write (``overwrite`` replaces them).
        """
        from cosim.experiment.save import run_files, write_run
        from cosim.files.folder import claimed

        files = self.scenario.files
        with claimed(directory, run_files(), inputs=files, overwrite=overwrite) as target:
            return write_run(self, target)

    def draw(self, path: str | Path) -> Path:
        """Draw who communicates when and who has the busiest link; png, svg or pdf, as the suffix says.

        Raises
        ------
        InputError
            The run has no messages (``cosim.run(..., messages=True)`` keeps them), matplotlib is not
            installed, or the file can't be written.
        """
        from cosim.results.render.sharing_figure import draw_sharing

        overlap = self.summary.overlap
        return draw_sharing(self.records, self.scenario.name, Path(path), overlap, self.alone)

    def to_json(self) -> dict[str, Any]:
        """The summary as plain values, and what each study found, by its name; of ``alone``, ``alone_ps``."""
        found = {name: study.to_json() for name, study in self.studies.items()}
        return self.summary.to_json() | {
            "alone_ps" if name == "alone" else name: found[name] for name in found
        }

    def page_beside(self) -> Page:
        """The sections of the studies."""
        return [section for study in self.studies.values() for section in study.page()]

    def page(self) -> Page:
        """The sections of the whole page, for text and for HTML."""
        from cosim.results.render.summary_page import summary_page

        return [*summary_page(self.summary), *self.page_beside()]

    def __repr__(self) -> str:
        where = f"{self.records.topology.name}, network {self.records.network}"
        return f"<Run {self.scenario.name} on {where}: {format_time(self.records.end_ps)} simulated>"

    def __str__(self) -> str:
        from cosim.results.render.text import text

        return text(self.page())

    def report(self, other: Run | StoredRun | None = None) -> RunReport:
        """The run, or two beside each other, as one HTML page for notebooks and files."""
        from cosim.results.link_users import note_link_users
        from cosim.results.report.document import report

        note_link_users(self.records)
        return report([self] if other is None else [self, other])

    def _repr_html_(self) -> str:
        from cosim.results.render.html import html

        return html(self.page())


def run_scenario(
    scenario: Scenario,
    out: str | Path | None = None,
    *,
    resume: bool = False,
    store: str | Path | None = None,
    again: bool = False,
    messages: bool = False,
    engine: str | None = None,
    overwrite: bool = False,
    progress: OnProgress | None = None,
) -> Run | StoredRun:
    """Run one scenario; the parameters are those of :func:`cosim.run`, ``resume`` goes on with ``out``.

    Messages that the scenario doesn't write aren't in a store: with ``messages``, or an ``engine``, the
    scenario is run.

    Raises
    ------
    InputError, SimulationError
        As :func:`cosim.run`.
    """

    def make() -> Run:
        if out is not None:
            return _run_into(out, scenario, resume, overwrite, messages, engine, progress)
        from cosim.experiment.build import build

        return _run_built(scenario, build(scenario), messages, engine, progress)

    if store is None:
        return make()
    from cosim.experiment.store.single import through_store

    again = again or messages or engine is not None
    return through_store(store, scenario, out, make, again=again, overwrite=overwrite)


def _run_built(
    scenario: Scenario, built: Built, messages: bool, engine: str | None, progress: OnProgress | None
) -> Run:
    for warning in (*built.warnings, *(f"doubtful: {doubt}" for doubt in built.doubts)):
        _log.warning(warning)
    done = simulate(scenario, built, progress=progress, messages=messages, engine=engine)
    if scenario.scheduler is not None and not done.interrupted and not built.network.elsewhere:
        from cosim.experiment.alone import run_unscheduled

        try:
            without = run_unscheduled(scenario)
        except KeyboardInterrupt:
            done.interrupted = KeyboardInterrupt.__name__
        else:
            done.records.info["scheduling"] = replace(done.records.info["scheduling"], unscheduled_ps=without)
    return done


def _run_into(
    out: str | Path,
    scenario: Scenario,
    resume: bool,
    overwrite: bool,
    messages: bool,
    engine: str | None,
    progress: OnProgress | None,
) -> Run:
    """A run and its folder, which nobody else writes to until it is there."""
    from cosim.experiment import resume as unfinished
    from cosim.experiment.build import build
    from cosim.experiment.progress import told_in
    from cosim.experiment.save import check_messages, run_files, write_run
    from cosim.files.folder import claimed

    built = build(scenario)
    check_messages(scenario)
    names = [*run_files(), *unfinished.UNFINISHED_FILES]
    with claimed(out, names, inputs=scenario.files, overwrite=overwrite) as target:
        if resume:
            unfinished.go_on(built.network, target)
        else:
            unfinished.keep_log(built.network, scenario, target)
        with told_in(target, progress) as told:
            done = _run_built(scenario, built, messages, engine, told)
        write_run(done, target)
        if not done.interrupted:
            unfinished.finished(target)
    _log.info("written to %s", out)
    return done


def simulate(
    scenario: Scenario,
    built: Built,
    *,
    progress: OnProgress | None = None,
    messages: bool = False,
    engine: str | None = None,
) -> Run:
    """Replay what was built. An interrupt (Ctrl-C) gives the part that was computed.

    ``messages`` has the run keep every message, whether the scenario writes them or not; ``engine`` is
    ``kernel`` or ``reference``, None: the kernel where there is one.
    """
    from cosim.experiment.engines import engine_for
    from cosim.experiment.fold import fold
    from cosim.network.named import check_described
    from cosim.plugin_file import at

    messages = messages or scenario.record.messages is not False
    check_jobs(scenario)
    with (
        at(scenario.locate("jobs"), WorkloadError),
        at(scenario.locate("collectives"), AlgorithmError),
        at(scenario.locate("scheduler"), SchedulerError),
        _stalls_explained(scenario, built.topology),
        plugin_errors(),
        closing(built.network),
    ):
        with at(scenario.locate("network")):
            check_described(built.network)
        cluster: Cluster | None = None
        if scenario.scheduler is not None or scenario.queue is not None:
            from cosim.experiment.shared_cluster import shared_cluster

            built, cluster = shared_cluster(scenario, built)
        chosen = engine_for(engine)
        if scenario.has_processes:
            return _live(scenario, built, chosen, messages, progress)
        whole = cluster is not None or chosen == "reference"
        jobs, folding = (built.jobs, ()) if whole else fold(scenario, built, messages=messages)
        records = _replay(scenario, built, jobs, cluster, messages, progress, chosen)
    records.info["folding"] = folding
    said = []
    if cluster is not None:
        from cosim.results.scheduling import scheduling

        records.info["scheduling"] = scheduling(cluster)
        said = [f"{scenario.locate('scheduler') or scenario.name}: {one}" for one in cluster.warnings]
    return finished(scenario, built, records, said)


def finished(scenario: Scenario, built: Built, records: Records, said: Sequence[str] = ()) -> Run:
    """The run that records are of."""
    from cosim.experiment.doubts import doubts_after, too_fast
    from cosim.experiment.events import lifetimes, too_late
    from cosim.results.summary import mean_iterations

    records.info.setdefault("folding", ())
    records.info["training"] = lifetimes(scenario, built.jobs, mean_iterations(records)[: len(built.jobs)])
    warnings = [*built.warnings, *unchecked(scenario, built.planner), *said]
    if records.series is not None:
        from cosim.experiment.watch import coarser

        warnings += coarser(scenario, records)
    if not records.interrupted:
        warnings += too_late(scenario, records.end_ps)
    doubts = (*built.doubts, *too_fast(scenario, built.planner, records), *doubts_after(records))
    return Run(scenario, records, tuple(warnings), doubts, interrupted=records.interrupted)


def check_jobs(scenario: Scenario) -> None:
    """Refuse a scenario in which nothing would happen.

    Raises
    ------
    ScenarioError
        It has neither jobs nor processes.
    """
    if not scenario.jobs and not scenario.processes:
        raise ScenarioError(
            "jobs is empty, and there are no processes: nothing would happen",
            location=scenario.locate("jobs") or scenario.locate(),
            hint="cosim.open takes a scenario without jobs",
        )
    for number, job in enumerate(scenario.jobs):
        if job.is_driven and job.iterations > 1:
            raise ScenarioError(
                "a process decides itself how often it does what",
                location=scenario.locate("jobs", number, "iterations"),
                hint="take iterations away",
            )
    if not scenario.has_processes:
        return
    beside = "processes" if scenario.live else "collectives that code carries"
    for key in ("scheduler", "queue"):
        if getattr(scenario, key) is not None:
            raise ScenarioError(f"beside {beside} there is no {key}", location=scenario.locate(key))
    if scenario.fold == "always":
        raise ScenarioError(f"beside {beside} every rank is simulated", location=scenario.locate("fold"))


def _live(
    scenario: Scenario, built: Built, engine: EngineName, messages: bool, progress: OnProgress | None
) -> Run:
    """Run a scenario with processes."""
    from cosim.experiment.live import live

    progress_of = None if progress is None else _passed_on(progress)
    return live(scenario, built, engine, messages=messages, progress=progress_of)


def _replay(
    scenario: Scenario,
    built: Built,
    jobs: Sequence[JobInfo],
    cluster: Cluster | None,
    messages: bool,
    progress: OnProgress | None,
    engine: EngineName,
) -> Records:
    """Replay jobs on what was built, as the scenario says."""
    from cosim.experiment.engines import plain
    from cosim.experiment.sizes import check_run
    from cosim.plugin_file import at

    check_run(jobs)
    record = scenario.record
    looked_at: Watched | None = None
    if record.queues or record.rates:
        from cosim.experiment.watch import watched

        looked_at = watched(scenario, built)
    network = built.network
    if engine == "reference":
        from cosim.engine.reference.replay import replay_reference as replay

        with at(scenario.locate("network")):
            network = plain(scenario, network, built.topology)
    else:
        from cosim.engine.replay import replay
    with at(scenario.locate("record", "spill"), ScenarioError):
        return replay(
            built.topology,
            network,
            jobs,
            built.planner,
            release=release_of(scenario, built.network),
            seed=scenario.seed,
            record_messages=messages,
            record_operations=None if record.operations == "all" else record.operations,
            progress=None if progress is None else _passed_on(progress),
            director=cluster,
            watched=looked_at,
            spill=None if record.spill is None else scenario.base / record.spill,
        )


def unchecked(scenario: Scenario, planner: Planner) -> list[str]:
    """Algorithms that were used, but of whose data nothing is proved, each with its place."""
    said = []
    for collective, algorithm in sorted(planner.unchecked):
        place = scenario.locate("collectives", collective) or scenario.name
        what = f"its data was not checked, so that it may not be an {collective} at all"
        said.append(f"{place}: {algorithm} is deadlock-free, but {what}: its messages carry no chunks")
    for collective, algorithm in sorted(planner.unstated):
        place = scenario.locate("collectives", collective) or scenario.name
        what = f"so that it may not be an {collective} at all: it does not say what its messages carry"
        said.append(f"{place}: of {algorithm} nothing was checked, {what} (checks_data)")
    return said


@contextmanager
def _stalls_explained(scenario: Scenario, topology: Topology) -> Iterator[None]:
    """With what the network was asked to do, or was to happen to it, that may be why."""
    from cosim.experiment.events import never_back

    try:
        yield
    except StallError as error:
        why = [*never_back(scenario), *scenario.network.why_stalled(topology)]
        raise StallError(error.message, [*why, *error.waits]) from error


def release_of(scenario: Scenario, network: NetworkSimulator) -> Literal["network", "engine"]:
    """Who starts dependent messages: the engine, too, where a simulator elsewhere can't, which is said."""
    if scenario.release == "network" and network.elsewhere and not network.describe().dependent_flows:
        name = network.describe().name
        _log.warning(
            "%s doesn't release messages that wait for others: the engine does (release: engine)", name
        )
        return "engine"
    return scenario.release


def _passed_on(progress: OnProgress) -> Any:
    """The engine's progress, as callers are told it."""

    def told(info: ProgressInfo) -> None:
        text = f"{format_time(info.now_ps)} simulated, {info.messages:,} messages"
        progress(RunProgress(info.operations_done, info.operations_total, text))

    return told
