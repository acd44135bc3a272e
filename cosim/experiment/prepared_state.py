"""What prepared runs begin in: everything of a scenario, made, and where runs put their own numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, localcontext
from typing import Annotated, Any, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from cosim.answers import is_foreign
from cosim.engine.prepared import Outcomes, PreparedReplay, RunCopy, RunPlaces
from cosim.engine.records import I64, JobInfo, Records
from cosim.engine.replay import Replay
from cosim.errors import CosimError, InputError, ScenarioError
from cosim.experiment.build import Built, assembled, fabric
from cosim.experiment.engines import engine_for
from cosim.experiment.events import with_changes
from cosim.experiment.fold import fold
from cosim.experiment.scenario import Scenario
from cosim.experiment.settings import parse_path
from cosim.experiment.simulate import release_of, simulate
from cosim.experiment.workloads import KEPT
from cosim.files.located_yaml import KeyPath
from cosim.network.aware import CongestionAwareNetwork
from cosim.network.compiled import CompiledNetwork, LinkNumber
from cosim.network.congestion.contract import Control
from cosim.network.congestion.network import CongestionNetwork
from cosim.network.fair_share import FairShareNetwork
from cosim.network.named import made_network
from cosim.network.unaware import CongestionUnawareNetwork
from cosim.registry import nearest
from cosim.results.summary import iteration_times, settled
from cosim.results.sums import exact_sum
from cosim.spec import Spec
from cosim.topology.graph import Topology
from cosim.topology.scale_up import host_shape
from cosim.topology.traced import DTYPES, Trace, TracedNumber, UntraceableError
from cosim.units import parse_rate, parse_time

_NETWORKS = FairShareNetwork, CongestionAwareNetwork, CongestionUnawareNetwork, CongestionNetwork
"""Those whose loops know nothing but their columns."""
_EXACT = 1 << 53
"""Whole numbers below it are float64."""
_DIGITS = 60
"""More than a float's, times those of any unit."""


class FreeSetting:
    """A setting that runs differ in.

    Attributes
    ----------
    path, keys
        Where it is.
    now
        What the scenario has there; None: nothing, or it is within what Python made.

    Raises
    ------
    ScenarioError
        There is no such setting.
    """

    def __init__(self, scenario: Scenario, path: str, unit: str = "") -> None:
        self.path, self.unit = path, unit
        self.keys: KeyPath = parse_path(path, path)
        self.now, field = _find(scenario, self.keys, path)
        self._adapter: TypeAdapter[Any] | None = None
        self._scale: Decimal | None = None
        if field is not None:
            self._adapter = TypeAdapter(Annotated[field.annotation, None, *field.metadata])  # type: ignore[arg-type]
            self._scale = _scale_of(unit, field) if unit else None
        self._good: list[Any] = [self.now, self.now]
        self._scenario = scenario

    @property
    def is_number(self) -> bool:
        """Whether the scenario has a number there, and a field's type says how it is written."""
        is_number = isinstance(self.now, int | float) and not isinstance(self.now, bool)
        return is_number and self._adapter is not None

    def said(self, value: Any) -> Any:
        """A value as a scenario says it, with its unit."""
        value = value.item() if isinstance(value, np.generic) else value
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return f"{value!r}{self.unit}" if is_number and self.unit else value

    def parsed(self, column: Sequence[Any], *, named: bool) -> NDArray[Any] | list[Any]:
        """The values of a column: int64 or float64 [rows], of a setting that is a number; else as they are.

        Raises
        ------
        InputError
            One that can't be; with its row, if it is to be ``named``.
        """
        if not self.is_number or self.keys[0] == "network":  # the control itself says what it takes
            return [self.said(one) for one in column]
        found = self._scaled(column) if self._scale is not None else None
        if found is None:
            found = [self._parsed(one, row if named else None) for row, one in enumerate(column)]
        values = np.array(found, np.float64 if isinstance(self.now, float) else np.int64)
        for row in {int(values.argmin()), int(values.argmax())} if len(values) else ():
            self._check_with_others(values[row].item(), column[row], row if named else None)
        return values

    def _parsed(self, one: Any, row: int | None) -> Any:
        assert self._adapter is not None
        try:
            return self._adapter.validate_python(self.said(one))
        except ValidationError as error:
            raise self._refused(one, error.errors()[0]["msg"], row) from None

    def _scaled(self, column: Sequence[Any]) -> list[Any] | None:
        """Numbers, as exact as texts would be; None: they are no plain numbers, and looked at one by one."""
        assert self._scale is not None
        kind, scale = (float if isinstance(self.now, float) else int), self._scale
        if any(type(one) not in (float, int) for one in column):
            return None
        with localcontext(prec=_DIGITS):
            exact = [Decimal(repr(one)) * scale for one in column]
        if not all(one.is_finite() for one in exact):
            return None
        found = [kind(one) for one in exact]
        if kind is int and any(one != given for one, given in zip(found, exact, strict=True)):
            return None
        return found

    def _check_with_others(self, value: Any, said: Any, row: int | None) -> None:
        """Hold a value against the scenario's other settings, unless it lies between two that were."""
        low, high = self._good
        if low <= value <= high:
            return
        try:
            self._scenario.with_settings({self.path: self.said(said)})
        except InputError as error:
            raise self._refused(said, error.message, row) from None
        self._good = [min(low, value), max(high, value)]

    def _refused(self, value: Any, why: str, row: int | None) -> ScenarioError:
        where = self.path if row is None else f"row {row}: {self.path}"
        hint = None
        if isinstance(value, int | float) and not self.unit and "unit" in why:
            hint = f"free={{{self.path!r}: UNIT}} of cosim.prepare says the unit of numbers"
        return ScenarioError(f"{where}: {why.removeprefix('Value error, ')}", hint=hint)


def _scale_of(unit: str, field: Any) -> Decimal | None:
    """What a number of a unit is multiplied by, where that is all there is to it."""
    parses = [getattr(one, "func", None) for one in field.metadata]
    parses += [getattr(one, "func", None) for one in _metadata_of(field.annotation)]
    known = [parse for parse in (parse_rate, parse_time) if parse in parses]
    try:
        return Decimal(known[0](f"1{unit}")) if known else None
    except ValueError:  # each value says so
        return None


def _metadata_of(annotation: Any) -> Iterator[Any]:
    """Yield what an annotation and its parts carry."""
    yield from getattr(annotation, "__metadata__", ())
    for inner in get_args(annotation):
        yield from _metadata_of(inner)


def _find(scenario: Scenario, keys: KeyPath, path: str) -> tuple[Any, Any]:
    """What a scenario has at a path, and the field that says what may be there; None: that isn't known."""
    here: Any = scenario
    field: Any = None
    for key in keys:
        if isinstance(here, list | tuple):
            if not isinstance(key, int) or key >= len(here):
                raise ScenarioError(f"free: {path}: there are {len(here)}, from [0] on; there is no {key!r}")
            here, field = here[key], None
        elif isinstance(here, Spec):
            known = type(here).model_fields
            if key not in known:
                name = str(key)
                raise ScenarioError(
                    f"free: {path}: {type(here).__name__} has no {name!r}{nearest(name, known)}"
                    f"\n  it has: {', '.join(known)}"
                )
            here, field = getattr(here, str(key)), known[str(key)]
        else:
            return None, None
    return here, field


def can_be_free(scenario: Scenario) -> list[str]:
    """Paths of a scenario's settings for whose values nothing is made again, as a rule."""
    found = [f"jobs[{k}].start" for k in range(len(scenario.jobs))]
    for name, one in (("topology", scenario.topology), ("network.control", _control(scenario))):
        if isinstance(one, Spec):
            numbers = [key for key in type(one).model_fields if isinstance(getattr(one, key), float)]
            found += [f"{name}.{key}" for key in numbers]
    return found


def _control(scenario: Scenario) -> Any:
    return getattr(scenario.network, "control", None)


def ranks_of(jobs: Sequence[JobInfo]) -> list[int]:
    """Ranks of each job."""
    return [len(job.endpoints) for job in jobs]


class PreparedState:
    """A scenario, made, and where runs of it put their own numbers.

    Raises
    ------
    CosimError
        It can't be made, or can't be run to its end.
    """

    def __init__(self, scenario: Scenario, free: Mapping[str, FreeSetting]) -> None:
        reads: set[str] = set()
        own = fabric(scenario)
        built = assembled(scenario, _watched(own, reads), KEPT, with_hosts=own)
        self.jobs = tuple(job.name for job in built.jobs)
        self.ranks = ranks_of(built.jobs)
        self._infos = built.jobs
        self._entries = [number for number, job in enumerate(scenario.jobs) for _ in range(job.count)]
        self._starts = np.array([job.start_ps for job in built.jobs], np.int64)
        self._written = [scenario.jobs[number].start for number in self._entries]
        self._copies: list[RunCopy] = []
        self._free = free
        self._links: list[str] = []
        self._tuned: list[str] = []
        self._trace: Trace | None = None
        self._own = own
        found = self._prepared(scenario, built, own)
        self.is_ready = found is not None
        """Whether runs need nothing of Python, as far as the first one shows."""
        if found is None:
            return
        self._replay = found
        assert isinstance(found.network, CompiledNetwork)
        self._network = found.network
        self._find_places(scenario, free, fixed=bool(reads) or not _is_free(scenario, built, own))

    def _prepared(self, scenario: Scenario, built: Built, own: Topology) -> PreparedReplay | None:
        """None: a run asks Python for more than can be prepared."""
        shared = scenario.scheduler is not None or scenario.queue is not None
        if shared or scenario.has_processes or type(built.network) not in _NETWORKS:
            return None
        if engine_for(None) != "kernel" or fold(scenario, built)[0] is not built.jobs:
            return None
        topology, release = with_changes(scenario, own), release_of(scenario, built.network)

        def make() -> Replay:
            network = made_network(scenario.network, scenario.context)
            return Replay(topology, network, built.jobs, built.planner, release, scenario.seed)

        try:
            found = PreparedReplay(make)
        except CosimError:
            simulate(scenario, assembled(scenario, own))  # fails, too, and says where
            raise
        return found if found.is_ready else None

    def _find_places(self, scenario: Scenario, free: Mapping[str, FreeSetting], *, fixed: bool) -> None:
        network, own = self._network, self._own
        numbers = network.numbers_of_links(own.link_rate_bps, own.link_latency_ps)
        if numbers is not None and not fixed and isinstance(scenario.topology, Spec):
            mine = [one for one in free.values() if one.keys[0] == "topology" and one.is_number]
            mine = [one for one in mine if _traced(scenario, own, [one]) is not None]
            self._trace = _traced(scenario, own, mine) if mine else None
            self._links = [one.path for one in mine] if self._trace is not None else []
        control = _control(scenario)
        if (
            isinstance(network, CongestionNetwork)
            and isinstance(control, Control)
            and control.inner() is control
        ):
            self._tuned = [path for path, one in free.items() if one.keys[:2] == ("network", "control")]
            self._tuned = [path for path in self._tuned if len(free[path].keys) == 3]
        columns = []
        if self._links:
            columns += [(*place, own.num_links) for place in numbers or {}]
        if self._tuned:
            columns.append(("parameters", "", len(network.columns.parameters)))
        self._places = RunPlaces(columns)

    def takes(self, path: str) -> bool:
        """Whether runs may differ in a setting without anything made again."""
        one = self._free[path]
        if not self.is_ready:
            return False
        is_start = one.keys[0] == "jobs" and one.keys[2:] == ("start",)
        return is_start or path in self._links or path in self._tuned

    def run(self, rows: I64, values: Mapping[str, Any], results: RunResults) -> list[int]:
        """Run rows of columns of values; those that are left, as they need more than was prepared."""
        count = len(rows)
        starts = np.repeat(self._starts[None, :], count, axis=0)
        for path, column in values.items():
            if self._free[path].keys[0] == "jobs":
                number = self._free[path].keys[1]
                for job, entry in enumerate(self._entries):
                    if entry == number:
                        starts[:, job] += column[rows] - self._written[job]
        is_good = np.ones(count, np.bool_)
        parts: list[NDArray[Any]] = []
        if self._links:
            parts += self._numbers_of_links(rows, values, is_good)
        if self._tuned:
            parts.append(self._parameters(rows, values, is_good))
        numbers = np.concatenate([part.view(np.int64) for part in parts] or [starts[:, :0]], axis=1)
        left: list[int] = rows[~is_good].tolist()
        if left:
            rows, starts, numbers = rows[is_good], starts[is_good], numbers[is_good]
        try:
            copy = self._copies.pop()
        except IndexError:  # all are in use
            copy = self._replay.copy(self._places)
        found = copy.run(starts, numbers)
        self._copies.append(copy)
        through = np.flatnonzero(found.status == 0)
        if len(through) < len(rows):
            left += rows[found.status != 0].tolist()
            rows, starts = rows[through], starts[through]
        results.take(rows, self._infos, starts, found, through)
        return left

    def _numbers_of_links(
        self, rows: I64, values: Mapping[str, Any], is_good: NDArray[np.bool_]
    ) -> Iterator[NDArray[Any]]:
        assert self._trace is not None
        given = []
        for path in self._links:
            one = self._free[path]
            column = values.get(path)
            given.append(np.full(len(rows), one.now) if column is None else column[rows])
        is_good &= self._trace.passes(given)
        links = []
        for name in DTYPES:
            found = self._trace.links(name, given)
            links.append(found if found is not None else np.tile(getattr(self._own, name), (len(rows), 1)))
        numbers: Mapping[LinkNumber, NDArray[Any]] | None = self._network.numbers_of_links(*links)
        assert numbers is not None
        return iter([*numbers.values()])

    def _parameters(
        self, rows: I64, values: Mapping[str, Any], is_good: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        found = np.tile(self._network.columns.parameters, (len(rows), 1))
        mine = [path for path in self._tuned if path in values]
        for at, row in enumerate(rows.tolist()) if mine else ():
            given = {str(self._free[path].keys[-1]): values[path][row] for path in mine}
            try:
                found[at] = self._network.parameters_with(given)
            except CosimError:  # ports depend on it, too, or it can't be: which a run by itself says
                is_good[at] = False
        return found


def _is_free(scenario: Scenario, built: Built, own: Topology) -> bool:
    """Whether what links have may change without anything else: links that fail, and algorithms that go by
    what hosts have.
    """
    if built.topology.changes is not None:
        return False
    if host_shape(own, scenario.topology) is not None:
        return not built.planner.goes_by_hosts
    # Which of several links of a GPU to switches are its NICs goes by their rates.
    first = own.link_dst[own.link_src == 0]
    return own.scale_up is not None or len(first) <= 1 or bool((first < own.num_endpoints).any())


def _traced(scenario: Scenario, own: Topology, settings: Sequence[FreeSetting]) -> Trace | None:
    """What links have at any values of settings; None: that can't be said without building it again."""
    spec = scenario.topology
    assert isinstance(spec, Spec)
    if is_foreign(type(spec)):
        return None
    trace = Trace([one.now for one in settings])
    for one, number in zip(settings, trace.numbers, strict=True):
        spec = _with(spec, one.keys[1:], number)
    try:
        built = spec.build(scenario.context)
    except (UntraceableError, CosimError, TypeError, ValueError):
        return None
    if built.hosts is not None and any(isinstance(one, TracedNumber) for one in vars(built.hosts).values()):
        return None
    same = [
        np.array_equal(getattr(built, name), getattr(own, name)) for name in ("link_src", "link_dst", *DTYPES)
    ]
    return trace if all(same) else None


def _with(value: Any, keys: KeyPath, number: TracedNumber) -> Any:
    """A spec with a number in the place of a setting, unchecked."""
    if not keys:
        return number
    key = keys[0]
    if isinstance(value, Spec):
        return value.model_copy(update={str(key): _with(getattr(value, str(key)), keys[1:], number)})
    assert isinstance(key, int)
    inner = [_with(one, keys[1:], number) if at == key else one for at, one in enumerate(value)]
    return type(value)(inner)


def _watched(topology: Topology, reads: set[str]) -> Topology:
    """The same topology, of which is noted who asks what links have."""

    class WatchedTopology(Topology):
        def __getattribute__(self, name: str) -> Any:
            if name in DTYPES:
                reads.add(name)
            return super().__getattribute__(name)

    fields = {name: getattr(topology, name) for name in Topology.__dataclass_fields__}
    made = WatchedTopology(**fields)
    reads.clear()
    return made


class RunResults:
    """What came of runs, by row: int64[rows]; ``iteration_ps`` is [rows, jobs]; 0 where a run failed."""

    def __init__(self, count: int, jobs: int) -> None:
        self.end_ps = np.zeros(count, np.int64)
        self.messages = np.zeros(count, np.int64)
        self.iteration_ps = np.zeros((count, jobs), np.int64)
        self.failed: dict[int, CosimError] = {}
        self._digests = np.zeros((count, 2), np.uint64)
        self._ends: list[Any] = [None] * count

    def take(self, rows: I64, jobs: Sequence[JobInfo], starts_ps: I64, found: Outcomes, at: I64) -> None:
        """Rows ``at`` of outcomes, of runs whose jobs started at ``starts_ps`` [rows, jobs]."""
        self.end_ps[rows], self.messages[rows] = found.end_ps[at], found.messages[at]
        self._digests[rows] = found.digest[at]
        ends, first = found.ends_ps[at], 0
        of_jobs = []
        for j, job in enumerate(jobs):
            of_jobs.append(ends[:, first : first + job.iterations])
            first += job.iterations
            self.iteration_ps[rows, j] = _means(of_jobs[j], starts_ps[:, j], job)
        for k, row in enumerate(rows.tolist()):
            self._ends[row] = of_jobs, k

    def take_records(self, row: int, records: Records) -> None:
        """A run as :func:`cosim.run` runs it."""
        self.end_ps[row], self.messages[row] = records.end_ps, records.num_messages
        self._digests[row] = int(records.digest[:16], 16), int(records.digest[16:], 16)
        of_jobs = [ends.max(axis=1, initial=0)[None, :] for ends in records.iteration_end_ps]
        self._ends[row] = of_jobs, 0
        for j, job in enumerate(records.jobs):
            if of_jobs[j].size:
                self.iteration_ps[row, j] = _means(of_jobs[j], np.array([job.start_ps]), job)[0]

    def digest(self, row: int) -> str:
        """A row's, as :attr:`cosim.Records.digest`."""
        return "".join(f"{one:016x}" for one in self._digests[row].tolist())

    def ends(self, row: int) -> tuple[I64, ...]:
        """When each iteration of each job ended on its last rank."""
        of_jobs, k = self._ends[row]
        return tuple(ends[k] for ends in of_jobs)


def _means(ends_ps: I64, starts_ps: I64, job: JobInfo) -> I64:
    """Mean iterations of a job, int64[rows], as a summary has them; ``ends_ps`` is [rows, iterations]."""
    if job.workload.table.longest_lag == 0:
        whole = ends_ps[:, -1] - starts_ps
        if ends_ps.shape[1] == 1:
            return np.asarray(whole, np.int64)
        if whole.max(initial=0) < _EXACT:
            return np.asarray(np.rint(whole / ends_ps.shape[1]), np.int64)
    found = []
    for ends, start in zip(ends_ps, starts_ps.tolist(), strict=True):
        times = settled(iteration_times(ends[:, None], start), job.workload)
        found.append(round(exact_sum(times) / len(times)))
    return np.array(found, np.int64)
