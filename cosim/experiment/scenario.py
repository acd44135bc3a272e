"""A scenario: one question, as a YAML file or as Python objects.

::

    topology: {kind: leaf_spine, ...}     # a name that `cosim list topology` shows, and its fields
    network: fair_share                   # short for {model: fair_share}
    jobs:
      - workload: {kind: transformer, ...}

`cosim list` shows every name, `cosim list topology leaf_spine` its fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    Field,
    PrivateAttr,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    field_validator,
)

from cosim.cluster.aligned import Aligned
from cosim.cluster.contract import Arrival, Placement, Queue
from cosim.cluster.pace import Stragglers
from cosim.cluster.schedulers.contract import Scheduler
from cosim.context import Context
from cosim.errors import Location, ScenarioError
from cosim.experiment import settings
from cosim.fabric.changes import DETECTION_PS
from cosim.faults.event import Event
from cosim.faults.training import TrainingRun
from cosim.files import located_yaml
from cosim.files.trust import check_document
from cosim.memory.contract import MemorySpec
from cosim.network.named import NetworkName
from cosim.pattern.config import CollectiveConfig
from cosim.processes.contract import Driver, ProcessSpec
from cosim.registry import Named, located
from cosim.spec import Spec, TimePs
from cosim.topology.contract import TopologySpec
from cosim.topology.graph import Topology
from cosim.workload.contract import WorkloadSpec
from cosim.workload.program import Workload

_MOST_JOBS = 1 << 12
"""Flow keys have 12 bits for a job."""


class Job(Spec):
    """One training job: what it computes and sends, how often, from when, and where it sits

    Examples
    --------
    >>> import cosim
    >>> workload = {"kind": "collective", "collective": "all_reduce", "ranks": 4, "size": "4MB"}
    >>> cosim.Job(name="mine", workload=workload, iterations=3, start="10us").start
    10000000
    """

    name: str = Field("", description="how reports call it; job0, job1 ... where it is left out")
    workload: Annotated[WorkloadSpec | Workload, Named("cosim.workloads", also=(Workload,))] = Field(
        description="what the job computes and sends in one iteration"
    )
    iterations: int = Field(1, ge=1, description="how often the workload is run, back to back")
    start: TimePs = Field(0, ge=0, description="when its ranks start")
    count: int = Field(
        1, ge=1, le=_MOST_JOBS, description="so many jobs like this one, called name.0, name.1 ..."
    )
    arrival: Annotated[Arrival | None, Named("cosim.arrivals")] = Field(
        None, description="when each of them starts, after start; omitted: all at start"
    )
    stragglers: tuple[Stragglers, ...] = Field((), description="ranks that compute slower")
    jitter: float = Field(
        0.0, ge=0, le=1, description="standard deviation of computation times, as a fraction of each"
    )
    training: TrainingRun | None = Field(
        None,
        description="the whole training of which these iterations are a sample, and how it survives failures",
    )
    placement: Annotated[Placement, Named("cosim.placements")] = Field(
        Aligned(),
        description="which endpoints its ranks sit on; omitted: in order, tp and ep groups whole in a host",
    )
    weight: float = Field(
        1.0, gt=0, allow_inf_nan=False, description="share of a link against flows of other jobs"
    )
    priority: int = Field(0, ge=0, description="0 is served first; lower ones get what is left")

    def names(self) -> list[str]:
        """The name of each job that this stands for."""
        return [self.name] if self.count == 1 else [f"{self.name}.{k}" for k in range(self.count)]

    @property
    def is_driven(self) -> bool:
        """Whether a process says what its ranks do, as the run goes on."""
        return isinstance(self.workload, Driver)

    def runs_on(self, context: Context) -> Spec | None:
        """The GPU whose numbers its times come from; None: none's, as of a workload that is given whole.

        Raises
        ------
        WorkloadError
            A file that names it is missing or damaged.
        """
        return self.workload.runs_on(context) if isinstance(self.workload, WorkloadSpec) else None

    def uses_seed(self) -> bool:
        """Whether the scenario's seed changes what the job does."""
        return (
            self.placement.uses_seed()
            or (isinstance(self.workload, WorkloadSpec) and self.workload.uses_seed())
            or (self.arrival is not None and self.arrival.uses_seed())
            or self.jitter > 0
            or any(one.ranks is None for one in self.stragglers)
        )


class Record(Spec):
    """What is written down beyond the summary"""

    messages: Literal[False, "npz", "parquet"] = Field(
        False, description="every message, as a file in --out; true is npz"
    )
    operations: Literal["all"] | Annotated[int, Field(ge=0)] = Field(
        "all",
        description="of how many ranks of each job operations are kept, evenly spread; where time went is "
        "then said of those, and stragglers and overlap are not looked for",
    )
    spill: str | None = Field(
        None,
        description="a folder: operations that ended are kept in a file there, which goes with the run, and "
        "not in memory",
    )

    queues: tuple[str, ...] = Field(
        (),
        description="queues, marks, drops and pauses over time of links by name or pattern: leaf* -> spine0",
    )
    rates: tuple[str, ...] = Field(
        (),
        description="rates and windows over time of jobs by name, and of what endpoints send: gpu0 -> gpu*",
    )
    every: TimePs = Field(
        10_000_000, ge=1, description="how far samples of queues and rates are apart; a long run takes fewer"
    )

    @field_validator("queues", "rates", mode="before")
    @classmethod
    def _one_is_a_list(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    @field_validator("messages", mode="before")
    @classmethod
    def _true_is_npz(cls, value: Any) -> Any:
        return "npz" if value is True else value

    def idle_settings(self) -> list[tuple[str, str]]:
        """See :class:`~cosim.spec.Spec`."""
        if self.spill is None or self.operations != 0:
            return []
        return [("spill", "no operations are kept (operations: 0)")]


def _none_is_nobody(value: Any, resolve: ValidatorFunctionWrapHandler) -> Any:
    """``none`` can be one of a sweep's choices."""
    return None if value in (None, "none") else resolve(value)


class Scenario(Spec):
    """One question: a topology, a network model, jobs, and how their collectives are carried

    Examples
    --------
    >>> import cosim
    >>> workload = {"kind": "collective", "collective": "all_reduce", "ranks": 4, "size": "4MB"}
    >>> scenario = cosim.Scenario(
    ...     topology={"kind": "ring", "endpoints": 4, "rate": "80Gbps", "latency": "0ns"},
    ...     network="fair_share",
    ...     jobs=[cosim.Job(workload=workload)],
    ... )
    >>> cosim.run(scenario).summary.jobs[0].iteration_mean_ps
    600000000
    >>> scenario.with_settings({"topology.rate": "160Gbps"}).topology.rate
    160000000000.0
    """

    name: str = Field("", description="what reports call it; the file's name where it is left out")
    description: str = Field(
        "", description="for people, on the report; omitted: the comment that the file begins with"
    )
    topology: Annotated[TopologySpec | Topology, Named("cosim.topologies", also=(Topology,))] = Field(
        description="nodes, links and routing"
    )
    network: NetworkName = Field(description="how long a message takes: the network simulator")
    memory: Annotated[MemorySpec | None, Named("cosim.memories"), WrapValidator(_none_is_nobody)] = Field(
        None, description="remote memory, which jobs load from and store to; omitted, or none: there is none"
    )
    jobs: tuple[Job, ...] = Field((), min_length=1, description="the jobs that share the fabric")
    processes: tuple[Annotated[ProcessSpec, Named("cosim.processes")], ...] = Field(
        (), description="processes that live beside the jobs: controllers, agents; of a plug-in each"
    )
    collectives: CollectiveConfig = Field(
        default_factory=CollectiveConfig, description="which algorithms carry the collectives"
    )
    events: tuple[Event, ...] = Field(
        (), description="links, nodes and ranks that fail, slow down and come back"
    )
    detection: TimePs = Field(
        DETECTION_PS, ge=0, description="how long it takes until routes avoid a dead link, or use it again"
    )
    release: Literal["network", "engine"] = Field(
        "network", description="who starts a message once what it waits for is there; same results"
    )
    fold: Literal["auto", "always", "never"] = Field(
        "auto",
        description="simulate ranks that provably fare the same once: auto does where a job has over 256 "
        "ranks, always refuses to run where it can't; operations are then those of the ranks simulated",
    )
    seed: int = Field(0, ge=0, description="of everything random that has no seed of its own")
    scheduler: Annotated[Scheduler | None, Named("cosim.schedulers"), WrapValidator(_none_is_nobody)] = Field(
        None,
        description="who decides when jobs start iterations, their paths and priorities; omitted, or none: "
        "nobody",
    )
    queue: Queue | None = Field(
        None,
        description="jobs wait until enough endpoints are free; omitted: each has its own from the beginning",
    )
    share_endpoints: bool = Field(False, description="ranks of several jobs may sit on one endpoint")
    record: Record = Field(default_factory=Record, description="what is written down beyond the summary")

    _document: located_yaml.Document | None = PrivateAttr(None)
    _is_as_written: bool = PrivateAttr(True)
    _base: Path = PrivateAttr(default_factory=Path)

    @field_validator("jobs")
    @classmethod
    def _name_jobs(cls, jobs: tuple[Job, ...]) -> tuple[Job, ...]:
        named = tuple(
            job if job.name else job.model_copy(update={"name": f"job{n}"}) for n, job in enumerate(jobs)
        )
        for n, job in enumerate(named):
            if any({*job.names()} & {*other.names()} for other in named[:n]):
                raise located(
                    "jobs", [((n, "name"), f"the name {job.name!r} is taken by another job", job.name)]
                )
        return named

    @property
    def base(self) -> Path:
        """Where relative paths start: the folder of the scenario file, or the working folder."""
        return self._base

    @property
    def context(self) -> Context:
        """What everything that the scenario names is built in."""
        return Context(self._base, self.seed)

    @property
    def source(self) -> str:
        """The file it was read from; empty for one that was made in Python."""
        return self._document.file if self._document is not None else ""

    @property
    def live(self) -> list[Driver | ProcessSpec]:
        """What takes part in the run as processes: beside the jobs, or that drive one."""
        own = () if self.of_topology is None else (self.of_topology,)
        drivers = (job.workload for job in self.jobs if isinstance(job.workload, Driver))
        return [*own, *self.processes, *drivers]

    @property
    def of_topology(self) -> ProcessSpec | None:
        """The process that the topology brings along."""
        found = self.topology.process() if isinstance(self.topology, TopologySpec) else None
        return found if isinstance(found, ProcessSpec) else None

    @property
    def has_processes(self) -> bool:
        """Whether processes take part in the run: those of :attr:`live`, or carriers of collectives."""
        return bool(self.live) or self.collectives.is_carried

    @property
    def files(self) -> list[Path]:
        """The files that it was read from."""
        return [Path(self.source)] if self.source else []

    def as_written(self) -> Any:
        """The YAML value it was read from, changes applied; for one made in Python, what YAML would say."""
        if self._document is not None and self._is_as_written:
            return self._document.value
        from cosim.written import plain

        return plain(self)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with other values; what is written of it, and its key in a store, are its own."""
        copy = super().model_copy(update=update, deep=deep)
        if update and update.keys() - {"name"}:
            copy._is_as_written = False
        return copy

    def locate(self, *path: str | int) -> Location | None:
        """Where the scenario says a key; None for one that was made in Python."""
        return self._document.locate(path) if self._document is not None else None

    def with_settings(self, changes: Mapping[str, Any] | Iterable[str]) -> Scenario:
        """A copy with ``{"jobs[0].iterations": 5}`` or ``["jobs[0].iterations=5"]`` set."""
        from cosim.written import plain

        if self._document is None or not self._is_as_written:
            document = located_yaml.Document("", plain(self, keep=True))
        else:
            value = plain(self._document.value, keep=True)
            lines, settings = dict(self._document.lines), dict(self._document.settings)
            document = located_yaml.Document(self.source, value, lines, settings)
        return from_document(document, self._base, self.name, changes)


def load(path: str | Path, set: Mapping[str, Any] | Iterable[str] = ()) -> Scenario:  # noqa: A002
    """Read a scenario file.

    Parameters
    ----------
    path
        A YAML file.
    set
        Changes: ``{"jobs[0].iterations": 5}``, or texts as the command line takes them,
        ``["jobs[0].iterations=5"]``.

    Returns
    -------
    Scenario
        Checked, but nothing of it is built yet.

    Raises
    ------
    ScenarioError
        Each mistake, with file, line, key, value, and what would be right.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import cosim
    >>> file = pathlib.Path(tempfile.mkdtemp(), "ring.yaml")
    >>> _ = file.write_text('''
    ... topology: {kind: ring, endpoints: 4, rate: 80Gbps, latency: 0ns}
    ... network: fair_share
    ... jobs: [{workload: {kind: collective, collective: all_reduce, ranks: 4, size: 4MB}}]
    ... ''')
    >>> cosim.load(file, {"jobs[0].iterations": 5}).jobs[0].iterations
    5
    """
    path = Path(path)
    document = located_yaml.read(path)
    return from_document(document, path.parent, path.stem, set)


def loads(
    text: str,
    set: Mapping[str, Any] | Iterable[str] = (),  # noqa: A002
    *,
    base: str | Path = ".",
    name: str = "scenario",
) -> Scenario:
    """A scenario from YAML text.

    Parameters
    ----------
    text
        YAML.
    set
        Changes, as for :func:`cosim.load`.
    base
        Where relative paths in it start.
    name
        What reports call it where it has no name of its own.

    Raises
    ------
    ScenarioError
        Each mistake, with line, key, value, and what would be right.

    Examples
    --------
    >>> import cosim
    >>> scenario = cosim.loads('''
    ... topology: {kind: ring, endpoints: 4, rate: 80Gbps, latency: 0ns}
    ... network: fair_share
    ... jobs: [{workload: {kind: collective, collective: all_reduce, ranks: 4, size: 4MB}}]
    ... ''')
    >>> scenario.network.name
    'fair_share'
    """
    return from_document(located_yaml.parse(text, name), Path(base), name, set)


def is_sweep(document: located_yaml.Document) -> bool:
    """Whether a YAML file is a sweep of scenarios."""
    return isinstance(document.value, dict) and "axes" in document.value


def from_document(
    document: located_yaml.Document,
    base: Path,
    name: str,
    changes: Mapping[str, Any] | Iterable[str] = (),
) -> Scenario:
    """A scenario from located YAML; ``name`` is used where it has none of its own."""
    check_document(document, base)
    settings.apply(document, changes)
    document.tell_comment()
    return _validate(document, base, name)


def _validate(document: located_yaml.Document, base: Path, name: str) -> Scenario:
    value = {} if document.value is None else document.value
    if isinstance(value, dict) and "axes" in value:
        raise ScenarioError(
            "this is a sweep, not a scenario: `cosim run` and cosim.sweep take it",
            location=document.locate(("axes",)),
        )
    try:
        scenario = Scenario.model_validate(value, context={"folder": base})
    except ValidationError as error:
        from cosim.experiment.mistakes import scenario_error

        raise scenario_error(error, Scenario, document) from None
    if not scenario.name:
        scenario = scenario.model_copy(update={"name": name})
    scenario._document = document
    scenario._base = base
    return scenario
