"""``cosim.run`` and ``cosim.sweep``: the way that scripts, the command line and notebooks all take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from cosim.errors import InputError
from cosim.experiment.progress import OnProgress
from cosim.experiment.scenario import Scenario, from_document, is_sweep
from cosim.experiment.settings import Changes
from cosim.experiment.simulate import Run, run_scenario
from cosim.experiment.sizes import allowing_large
from cosim.files.located_yaml import Document, parse, read
from cosim.plugin_file import plugin_errors

if TYPE_CHECKING:
    from cosim.experiment.executors.contract import Executor
    from cosim.experiment.sweep import Sweep
    from cosim.results.stored_run import StoredRun
    from cosim.results.sweep import SweepRun

    ScenarioSource = Scenario | Mapping[str, Any] | str | Path
    """Made in Python, as plain values, a YAML file, or YAML text (with a line break)."""
    Source = ScenarioSource | Sweep


@overload
def run(
    source: ScenarioSource,
    set: Changes = ...,
    out: str | Path | None = ...,
    *,
    store: str | Path,
    again: bool = ...,
    messages: bool = ...,
    engine: str | None = ...,
    allow_large: bool = ...,
    overwrite: bool = ...,
    progress: OnProgress | None = ...,
) -> Run | StoredRun: ...
@overload
def run(
    source: ScenarioSource | None = ...,
    set: Changes = ...,
    out: str | Path | None = ...,
    *,
    resume: str | Path | None = ...,
    store: None = None,
    messages: bool = ...,
    engine: str | None = ...,
    allow_large: bool = ...,
    overwrite: bool = ...,
    progress: OnProgress | None = ...,
) -> Run: ...
@plugin_errors()
def run(
    source: ScenarioSource | None = None,
    set: Changes = (),  # noqa: A002
    out: str | Path | None = None,
    *,
    resume: str | Path | None = None,
    messages: bool = False,
    engine: str | None = None,
    store: str | Path | None = None,
    again: bool = False,
    allow_large: bool = False,
    overwrite: bool = False,
    progress: OnProgress | None = None,
) -> Run | StoredRun:
    """Run a scenario.

    Settings that can't affect the result are logged as warnings of the logger ``cosim``, before the run. What
    takes several runs are :func:`cosim.study`, :func:`cosim.sweep` and :func:`cosim.search`.

    Parameters
    ----------
    source
        A YAML file, YAML text (with a line break) or its values, or a :class:`Scenario`.
    set
        Changes: ``{"jobs[0].iterations": 5}``, or texts as the command line takes them.
    out
        A folder to write the results to.
    resume
        Instead of a source: the folder of a run over a simulator elsewhere that broke off.
    messages
        Keep every message in the run, whether the scenario writes them or not: :meth:`Run.draw` needs them.
    engine
        ``"kernel"``, or ``"reference"``: the same results from plain SimPy, slowly, to be stepped through.
    store
        Where runs are kept, and taken from where they are there: a folder, or an address that fsspec knows.
    again
        Run also what the store has.
    allow_large
        Run also what would take more than this machine's memory, or hours, by an estimate.
    overwrite
        Replace files in ``out`` that cosim did not write, and that have the names of results.
    progress
        Called now and then with ``done``, ``total`` and ``text``. What it raises ends the run;
        KeyboardInterrupt keeps what was computed.

    Returns
    -------
    Run
        What came of it.
    StoredRun
        With ``store``, where the store has it.

    Raises
    ------
    InputError
        A mistake in the scenario, with its place; or parameters that don't go together.
    SimulationError
        The run can't go on; says who waits for whom.
    NetworkError
        A network simulator failed.

    Examples
    --------
    >>> import cosim
    >>> text = '''
    ... topology: {kind: ring, endpoints: 4, rate: 80Gbps, latency: 0ns}
    ... network: congestion_aware
    ... jobs: [{workload: {kind: collective, collective: all_reduce, ranks: 4, size: 4MB}}]
    ... '''
    >>> cosim.run(text).summary.jobs[0].iteration_mean_ps  # 6 steps of 1 MB at 10 bytes/ns
    600000000
    >>> cosim.run(text, {"topology.rate": "160Gbps"}).summary.jobs[0].iteration_mean_ps
    300000000
    """
    if resume is not None:
        given = {"source": source, "set": set, "out": out, "store": store, "again": again, "engine": engine}
        for name, value in given.items():
            if value:
                raise InputError(f"{name} doesn't go with resume, which goes on as the run began")
        from cosim.experiment.resume import load_unfinished

        scenario, out = load_unfinished(resume), resume
    elif source is None:
        raise InputError("give a scenario, or resume with the folder of a run that broke off")
    else:
        scenario = read_scenario(source, set)
    with allowing_large(allow_large):
        return run_scenario(
            scenario,
            out,
            resume=resume is not None,
            store=store,
            again=again,
            messages=messages,
            engine=engine,
            overwrite=overwrite,
            progress=progress,
        )


@plugin_errors()
def sweep(
    source: Source,
    axes: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    seeds: int | Iterable[int] | None = None,
    measures: Iterable[str] | None = None,
    set: Changes = (),  # noqa: A002
    out: str | Path | None = None,
    store: str | Path | None = None,
    again: bool = False,
    executor: Executor | Mapping[str, Any] | str | None = None,
    workers: int | None = None,
    allow_large: bool = False,
    overwrite: bool = False,
    progress: OnProgress | None = None,
) -> SweepRun:
    """Run a scenario for every combination of choices on named axes, and for several seeds.

    Parameters
    ----------
    source
        A scenario, as for :func:`cosim.run`; or a sweep, which has axes of its own.
    axes
        ``{axis: {label: {setting: value}}}``, or short ``{axis: {setting: [values]}}``. The choices of the
        first are compared with one another.
    seeds
        Seeds of the scenario, or how many: 0, 1, 2 ...; 1 if not given.
    measures
        Of `cosim list sweep`; the mean iteration if not given.
    set
        Changes of the scenario or the sweep.
    out
        A folder for the table, CSV and figures.
    executor
        Where runs are run, ``"dask://host:8786"``, of `cosim list executor`.
    workers
        The same: processes; 1 if not given. With more, a script needs ``if __name__ == "__main__":``.
    store, again, allow_large, overwrite, progress
        As for :func:`cosim.run`.

    Returns
    -------
    SweepRun
        Every trial, means with confidence intervals, orders of the choices.

    Raises
    ------
    InputError
        A mistake in the scenario or the axes; says which combination.
    SimulationError
        A process of the sweep was killed.

    Examples
    --------
    >>> import cosim
    >>> scenario = cosim.loads('''
    ... topology: {kind: ring, endpoints: 4, rate: 80Gbps, latency: 0ns}
    ... network: fair_share
    ... jobs: [{workload: {kind: collective, collective: all_reduce, ranks: 4, size: 4MB}}]
    ... ''')
    >>> done = cosim.sweep(scenario, {"rate": {"topology.rate": ["80Gbps", "160Gbps"]}})
    >>> done.trials.iteration_ps
    array([6.e+08, 3.e+08])
    >>> done.order((), "iteration")  # best first
    ('160Gbps', '80Gbps')
    """
    from cosim.experiment.executors.contract import read_executor
    from cosim.experiment.trials import run_sweep

    own = {"seeds": seeds, "measures": None if measures is None else [*measures]}
    own = {name: value for name, value in own.items() if value is not None}
    read_in = read_source(source, set)
    if not isinstance(read_in, Scenario):
        if axes is not None:
            raise InputError(f"axes don't go with a sweep, which has its own: {', '.join(read_in.axes)}")
        chosen = read_in.with_settings(own) if own else read_in
    else:
        if not axes:
            raise InputError("a scenario needs axes to be a sweep", hint='{"rate": {"topology.rate": [...]}}')
        from cosim.experiment.sweep import Sweep, sweep_from

        document = Document("sweep", {"scenario": read_in, "axes": dict(axes), **own})
        chosen = sweep_from(document, read_in.base, read_in.name, kind=Sweep)
    with allowing_large(allow_large):
        return run_sweep(
            chosen,
            out,
            store=store,
            again=again,
            executor=read_executor(executor),
            workers=workers,
            overwrite=overwrite,
            progress=progress,
        )


def read_scenario(source: Source, changes: Changes = ()) -> Scenario:
    """The scenario that is meant, with changes.

    Raises
    ------
    InputError
        A mistake, with its place; or it is a sweep.
    """
    found = read_source(source, changes)
    if not isinstance(found, Scenario):
        raise InputError(f"{found.name or 'this'} is a sweep, not a scenario", hint="cosim.sweep runs it")
    return found


def read_source(source: Source, changes: Changes = ()) -> Scenario | Sweep:
    """The scenario or the sweep that is meant, with changes.

    Raises
    ------
    ScenarioError
        Each mistake, with its place.
    """
    if isinstance(source, Scenario):
        return source.with_settings(changes) if changes else source
    if isinstance(source, Mapping):
        from cosim.written import plain

        document, base, name = Document("scenario", plain(source, keep=True)), Path(), "scenario"
    elif isinstance(source, str) and "\n" in source:
        document, base, name = parse(source, "scenario"), Path(), "scenario"
    elif isinstance(source, str | Path):
        path = Path(source)
        document, base, name = read(path), path.parent, path.stem
    else:
        from cosim.experiment.sweep import Sweep

        if not isinstance(source, Sweep):
            raise InputError(
                f"a {type(source).__name__} is no scenario: give a file, YAML text, Scenario or Sweep"
            )
        return source.with_settings(changes) if changes else source
    if is_sweep(document):
        from cosim.experiment.sweep import Sweep, refuse_design, sweep_from

        refuse_design(document)
        return sweep_from(document, base, name, changes, kind=Sweep)
    return from_document(document, base, name, changes)
