"""``cosim.prepare``: a scenario of which a few settings are free, made once and run any number of times."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cosim.engine.records import I64
from cosim.errors import CosimError, InputError, ScenarioError
from cosim.experiment.build import assembled, fabric
from cosim.experiment.prepared_state import FreeSetting, PreparedState, RunResults, can_be_free, ranks_of
from cosim.experiment.run import read_scenario
from cosim.experiment.scenario import Scenario
from cosim.experiment.simulate import check_jobs, simulate
from cosim.experiment.workloads import KEPT
from cosim.plugin_file import plugin_errors
from cosim.registry import nearest

Free = Sequence[str] | Mapping[str, str]
"""Paths of settings, or each one's unit, in which tables have its numbers."""
RunTable = Mapping[str, Any] | Sequence[Mapping[str, Any]]
"""Columns by path (a pandas table too), or rows."""

_MOST_STATES = 8
_MOST_ASKED = 1024
_CHUNK_S = 0.02
_MOST_AT_ONCE, _FIRST_AT_ONCE = 512, 16


@dataclass(frozen=True, eq=False)
class PreparedRun:
    """What came of one run of :meth:`PreparedScenario.run`; :func:`cosim.run` has the rest.

    Attributes
    ----------
    values
        The free settings, by path.
    end_ps
        When the last operation ended.
    iteration_ps
        Mean iteration of each job, picoseconds; None: it ended none.
    iteration_ends_ps
        int64[iterations] of each job: when each ended on its last rank.
    num_messages
        Messages that arrived.
    digest
        As :attr:`cosim.Records.digest` of the same run by :func:`cosim.run`.

    Examples
    --------
    >>> import cosim
    >>> prepared = cosim.prepare(
    ...     '''
    ... topology: {kind: ring, endpoints: 4, rate: 80Gbps, latency: 0ns}
    ... network: fair_share
    ... jobs: [{workload: {kind: collective, collective: all_reduce, ranks: 4, size: 4MB}}]
    ... ''',
    ...     free={"jobs[0].start": "us"},
    ... )
    >>> run = prepared.run({"jobs[0].start": 5})
    >>> run.iteration_ps, run.end_ps, run.num_messages
    ((600000000,), 605000000, 24)
    """

    values: Mapping[str, Any]
    end_ps: int
    iteration_ps: tuple[int | None, ...]
    iteration_ends_ps: tuple[I64, ...]
    num_messages: int
    digest: str


@dataclass(frozen=True, eq=False)
class PreparedRuns(Sequence[PreparedRun]):
    """What came of the runs of :meth:`PreparedScenario.run_many`, in columns; ``runs[k]`` is one of them.

    Attributes
    ----------
    jobs
        Names of the jobs.
    table
        The free settings of each run, as they were given.
    end_ps, num_messages
        int64[runs]; 0 where a run failed.
    iteration_ps
        int64[runs, jobs]: mean iteration; 0 where a run failed.
    failed
        What went wrong, by row; the others are there.

    Examples
    --------
    >>> import cosim
    >>> prepared = cosim.prepare(
    ...     '''
    ... topology: {kind: ring, endpoints: 4, rate: 80Gbps, latency: 0ns}
    ... network: fair_share
    ... jobs: [{workload: {kind: collective, collective: all_reduce, ranks: 4, size: 4MB}}]
    ... ''',
    ...     free={"jobs[0].start": "us"},
    ... )
    >>> runs = prepared.run_many({"jobs[0].start": [5, 7]})
    >>> runs.end_ps, runs[1].values
    (array([605000000, 607000000]), {'jobs[0].start': 7})
    """

    jobs: tuple[str, ...]
    table: Mapping[str, Sequence[Any]]
    end_ps: I64
    num_messages: I64
    iteration_ps: I64
    failed: Mapping[int, CosimError]
    _results: RunResults = field(repr=False)

    def __len__(self) -> int:
        return len(self.end_ps)

    @property
    def digests(self) -> list[str]:
        """Each run's digest; an empty text where it failed."""
        return ["" if row in self.failed else self._results.digest(row) for row in range(len(self))]

    def __getitem__(self, row: Any) -> Any:
        """One run.

        Raises
        ------
        CosimError
            It failed.
        """
        if isinstance(row, slice):
            return [self[k] for k in range(*row.indices(len(self)))]
        row = range(len(self))[row]
        if row in self.failed:
            raise self.failed[row]
        return PreparedRun(
            {path: column[row] for path, column in self.table.items()},
            int(self.end_ps[row]),
            tuple(int(one) for one in self.iteration_ps[row]),
            self._results.ends(row),
            int(self.num_messages[row]),
            self._results.digest(row),
        )

    def __repr__(self) -> str:
        return f"<PreparedRuns: {len(self)} runs, {len(self.failed)} failed>"


@plugin_errors()
def prepare(scenario: Scenario | Mapping[str, Any] | str | Path, free: Free) -> PreparedScenario:
    """Make all of a scenario that does not depend on a few settings, once, to run it many times.

    Parameters
    ----------
    scenario
        A scenario, a YAML file, or YAML text (with a line break).
    free
        Paths of the settings that runs differ in, as in ``["topology.rate", "jobs[0].start"]``. Their values
        are texts with units; with ``{"topology.rate": "Gbps"}`` they may be numbers in that unit.

    Returns
    -------
    PreparedScenario
        ``run(values)`` and ``run_many(table)``.

    Raises
    ------
    InputError
        A mistake in the scenario; a setting that there is none of, or that changes the number of ranks.
    SimulationError
        The scenario as it is can't be run to its end.

    Examples
    --------
    >>> import cosim
    >>> prepared = cosim.prepare(
    ...     '''
    ... topology: {kind: ring, endpoints: 4, rate: 80Gbps, latency: 0ns}
    ... network: fair_share
    ... jobs: [{workload: {kind: collective, collective: all_reduce, ranks: 4, size: 4MB}}]
    ... ''',
    ...     free={"topology.rate": "Gbps"},
    ... )
    >>> prepared.run({"topology.rate": "40Gbps"}).end_ps
    1200000000
    >>> prepared.run_many({"topology.rate": [40, 80, 160]}).end_ps
    array([1200000000,  600000000,  300000000])
    """
    return PreparedScenario(read_scenario(scenario), free)


class PreparedScenario:
    """A scenario that is ready to run at any values of its free settings; :func:`cosim.prepare` makes it.

    Where only rates and latencies of links, starts of jobs or parameters of a congestion control are free, a
    run takes its loop and little more. Others are free as well; then all but workloads is made again for each
    value. Threads may run at the same time.

    Examples
    --------
    >>> import cosim
    >>> prepared = cosim.prepare(
    ...     '''
    ... topology: {kind: ring, endpoints: 4, rate: 80Gbps, latency: 0ns}
    ... network: fair_share
    ... jobs: [{workload: {kind: collective, collective: all_reduce, ranks: 4, size: 4MB}}]
    ... ''',
    ...     free={"jobs[0].start": "us"},
    ... )
    >>> prepared.free, prepared.quick, prepared.jobs
    (('jobs[0].start',), ('jobs[0].start',), ('job0',))
    """

    def __init__(self, scenario: Scenario, free: Free) -> None:
        self.scenario = scenario
        units = dict(free) if isinstance(free, Mapping) else dict.fromkeys(free, "")
        if isinstance(free, str) or not units:
            raise ScenarioError("free: name settings, as in free=['topology.rate', 'jobs[0].start']")
        check_jobs(scenario)
        self._lock = threading.RLock()
        self._states: dict[tuple[Any, ...], PreparedState] = {}
        self._asked: set[tuple[Any, ...]] = set()
        self._free = {path: FreeSetting(scenario, path, unit) for path, unit in units.items()}
        base = self._state(())
        self._ranks = base.ranks
        self.jobs = base.jobs
        """Names of the jobs."""
        for one in self._free.values():
            self._refuse_ranks(one)

    @property
    def free(self) -> tuple[str, ...]:
        """The free settings."""
        return tuple(self._free)

    @property
    def quick(self) -> tuple[str, ...]:
        """Those of the free settings for whose values nothing is made again."""
        state = self._state(())
        return tuple(path for path in self._free if state.takes(path))

    def __repr__(self) -> str:
        return f"<PreparedScenario {self.scenario.name}: free {', '.join(self._free)}>"

    def run(self, values: Mapping[str, Any] | None = None) -> PreparedRun:
        """Run it once.

        Parameters
        ----------
        values
            Of free settings, by path; one that is left out stays as the scenario has it.

        Raises
        ------
        InputError
            A setting that is not free, or a value that can't be.
        SimulationError
            The run can't go on to its end.
        """
        runs = self._run(_columns([values or {}], self._free), 1, named=False)
        return runs[0]  # type: ignore[no-any-return]

    def run_many(self, table: RunTable, *, threads: int | None = None) -> PreparedRuns:
        """Run it for each row of a table, on several threads at once.

        Parameters
        ----------
        table
            A column of values for each free setting that varies: a mapping of paths to columns, or rows.
        threads
            How many; None: as many as there are cores.

        Returns
        -------
        PreparedRuns
            In the order of the rows, whatever the number of threads. Runs that fail are in ``failed``.

        Raises
        ------
        InputError
            A setting that is not free, columns of different lengths, or a value that can't be; with its row.
        """
        if threads is not None and threads < 1:
            raise InputError(f"threads: {threads}; at least 1")
        return self._run(_columns(table, self._free), threads or _cores(), named=True)

    # -- states --------------------------------------------------------------------------------------

    def _state(self, key: tuple[Any, ...]) -> PreparedState:
        """What runs begin in, with settings that are not quick at these values: (path, value) each."""
        with self._lock:
            found = self._states.pop(key, None)
            if found is None:
                scenario = self.scenario.with_settings(dict(key)) if key else self.scenario
                found = PreparedState(scenario, self._free)
            self._states[key] = found  # the one used last is the last
            while len(self._states) > _MOST_STATES:
                del self._states[next(one for one in self._states if one)]
            return found

    def _refuse_ranks(self, one: FreeSetting) -> None:
        """Refuse a setting that says how many ranks there are, as far as other values show it."""
        now = one.now
        if one.keys[0] != "jobs" or not isinstance(now, int) or isinstance(now, bool):
            return
        for other in (2 * now, now + 1):
            try:
                scenario = self.scenario.with_settings({one.path: other})
                built = assembled(scenario, fabric(scenario), KEPT)
            except InputError as error:
                if "endpoints" not in str(error):
                    continue
                raise self._changes_ranks(one.path) from error
            if ranks_of(built.jobs) != self._ranks:
                raise self._changes_ranks(one.path)

    def _changes_ranks(self, path: str) -> ScenarioError:
        can = ", ".join(can_be_free(self.scenario)[:8])
        return ScenarioError(
            f"free: {path} changes the number of ranks", hint=f"these can be free: {can} ..."
        )

    # -- runs ----------------------------------------------------------------------------------------

    def _run(self, table: dict[str, list[Any]], threads: int, *, named: bool) -> PreparedRuns:
        count = len(next(iter(table.values()), [None]))
        base = self._state(())
        quick = {path for path in table if base.takes(path)}
        values = {path: self._free[path].parsed(table[path], named=named) for path in quick}
        results = RunResults(count, len(self.jobs))
        groups: dict[tuple[Any, ...], list[int]] = {}
        if len(quick) == len(table):
            groups[()] = [*range(count)]
        else:
            slow = [self._free[path] for path in table if path not in quick]
            for row in range(count):
                key = tuple((one.path, one.said(table[one.path][row])) for one in slow)
                groups.setdefault(key, []).append(row)
        for key, rows in groups.items():
            left = self._run_group(key, np.array(rows, np.int64), values, results, threads)
            for row in left:
                try:
                    self._slowly(row, table, results)
                except CosimError as error:
                    if not named:
                        raise
                    found = self._named(error, row, table)
                    if isinstance(error, InputError):
                        raise found from error
                    results.failed[row] = found
        return PreparedRuns(
            self.jobs, table, results.end_ps, results.messages, results.iteration_ps, results.failed, results
        )

    def _run_group(
        self, key: tuple[Any, ...], rows: I64, values: Mapping[str, Any], results: RunResults, threads: int
    ) -> list[int]:
        """Run rows that begin in one state; those that are left, as they need more than was prepared."""
        left: list[int] = rows.tolist()
        if len(rows) == 1 and key not in self._states and key not in self._asked:
            self._asked = {*self._asked, key} if len(self._asked) < _MOST_ASKED else {key}
            return left  # it may be the only one
        try:
            state = self._state(key)
        except CosimError:  # each says it by itself
            return left
        if state.ranks != self._ranks or not state.is_ready:
            return left
        parts = _in_chunks(rows, threads, lambda mine: state.run(mine, values, results))
        return sorted(row for part in parts for row in part)

    def _slowly(self, row: int, table: Mapping[str, list[Any]], results: RunResults) -> None:
        """A run that asks Python for more than was prepared: as :func:`cosim.run` runs it."""
        given = {path: self._free[path].said(column[row]) for path, column in table.items()}
        scenario = self.scenario.with_settings(given) if given else self.scenario
        built = assembled(scenario, fabric(scenario), KEPT)
        if ranks_of(built.jobs) != self._ranks:
            raise self._changes_ranks(", ".join(table))
        done = simulate(scenario, built)
        if done.interrupted:
            raise KeyboardInterrupt
        results.take_records(row, done.records)

    def _named(self, error: CosimError, row: int, table: Mapping[str, list[Any]]) -> CosimError:
        said = ", ".join(f"{path}={self._free[path].said(column[row])}" for path, column in table.items())
        where = f"row {row} ({said})"
        if isinstance(error, InputError):
            return type(error)(f"{where}: {error}")
        error.args = (f"{where}: {error}", *error.args[1:])
        return error


def _columns(table: RunTable, free: Mapping[str, FreeSetting]) -> dict[str, list[Any]]:
    """Columns of values by path.

    Raises
    ------
    InputError
        A column of what is not free, or of another length than the others.
    """
    if isinstance(table, Sequence):
        names = [*table[0]] if table else []
        for row, one in enumerate(table):
            if {*one} != {*names}:
                raise InputError(f"row {row} has {', '.join(one)}, the first row {', '.join(names)}")
        columns = {name: [_as_plain(one[name]) for one in table] for name in names}
    else:
        columns = {str(name): _as_list(table[name]) for name in table}
    for name in columns:
        if name not in free:
            raise InputError(f"{name!r} is not free{nearest(name, free)}", hint=f"free are {', '.join(free)}")
    lengths = {name: len(column) for name, column in columns.items()}
    if len({*lengths.values()}) > 1:
        said = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise InputError(f"columns have different lengths: {said}")
    return columns


def _as_plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _as_list(column: Any) -> list[Any]:
    return column.tolist() if hasattr(column, "tolist") else [*column]


def _in_chunks(rows: I64, threads: int, run: Callable[[I64], list[int]]) -> Iterator[list[int]]:
    """What ``run`` gives for parts of the rows, as long as a wish to stop may wait, on so many threads."""
    if len(rows) == 1:
        yield run(rows)
        return
    lock, at, size, stops = threading.Lock(), 0, _FIRST_AT_ONCE, False

    def work() -> list[list[int]]:
        nonlocal at, size
        found: list[list[int]] = []
        while not stops:
            with lock:
                mine, at = rows[at : at + size], at + size
            if not len(mine):
                break
            began = time.perf_counter()
            found.append(run(mine))
            took = time.perf_counter() - began
            size = min(max(int(len(mine) * _CHUNK_S / max(took, 1e-9)), 1), _MOST_AT_ONCE)
        return found

    with ThreadPoolExecutor(threads) as pool:
        futures = [pool.submit(work) for _ in range(threads)]
        try:
            for future in futures:
                yield from future.result()
        finally:
            stops = True


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
