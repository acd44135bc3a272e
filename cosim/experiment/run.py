"""``cosim.run`` and ``cosim.sweep``: the way that scripts, the command line and notebooks all take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
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
    from cosim.experiment.networks import Networks, Vary
    from cosim.experiment.sweep import Sweep
    from cosim.results.networks import NetworkComparison
    from cosim.results.stored_run import StoredRun
    from cosim.results.sweep import SweepRun

    Source = Scenario | Sweep | Mapping[str, Any] | str | Path
    """Made in Python, as plain values, a YAML file, or YAML text (with a line break)."""


_BESIDE = frozenset({"alone", "open_loop", "what_matters", "messages", "figure"})
"""What is computed beside one run, or kept of it."""


@overload
def run(
    source: Source,
    set: Changes = ...,
    out: None = None,
    *,
    networks: Networks,
    vary: Vary = ...,
    store: str | Path | None = ...,
    again: bool = ...,
    executor: Executor | Mapping[str, Any] | str | None = ...,
    workers: int | None = ...,
    allow_large: bool = ...,
    progress: OnProgress | None = ...,
) -> NetworkComparison: ...
@overload
def run(
    source: Sweep,
    set: Changes = ...,
    out: str | Path | None = ...,
    *,
    figure: str | Path | None = ...,
    store: str | Path | None = ...,
    again: bool = ...,
    executor: Executor | Mapping[str, Any] | str | None = ...,
    workers: int | None = ...,
    allow_large: bool = ...,
    overwrite: bool = ...,
    progress: OnProgress | None = ...,
) -> SweepRun: ...
@overload
def run(
    source: Scenario | Mapping[str, Any] | str | Path,
    set: Changes = ...,
    out: str | Path | None = ...,
    *,
    store: str | Path,
    again: bool = ...,
    alone: bool = ...,
    open_loop: Changes | None = ...,
    what_matters: bool = ...,
    messages: bool = ...,
    figure: str | Path | None = ...,
    engine: str | None = ...,
    workers: int | None = ...,
    allow_large: bool = ...,
    overwrite: bool = ...,
    progress: OnProgress | None = ...,
) -> Run | StoredRun: ...
@overload
def run(
    source: Scenario | Mapping[str, Any] | str | Path | None = ...,
    set: Changes = ...,
    out: str | Path | None = ...,
    *,
    resume: str | Path | None = ...,
    store: None = None,
    networks: None = None,
    alone: bool = ...,
    open_loop: Changes | None = ...,
    what_matters: bool = ...,
    messages: bool = ...,
    figure: str | Path | None = ...,
    engine: str | None = ...,
    workers: int | None = ...,
    allow_large: bool = ...,
    overwrite: bool = ...,
    progress: OnProgress | None = ...,
) -> Run: ...
@plugin_errors()
def run(
    source: Source | None = None,
    set: Changes = (),  # noqa: A002
    out: str | Path | None = None,
    *,
    resume: str | Path | None = None,
    networks: Networks | None = None,
    vary: Vary = (),
    alone: bool = False,
    open_loop: Changes | None = None,
    what_matters: bool = False,
    messages: bool = False,
    figure: str | Path | None = None,
    engine: str | None = None,
    store: str | Path | None = None,
    again: bool = False,
    executor: Executor | Mapping[str, Any] | str | None = None,
    workers: int | None = None,
    allow_large: bool = False,
    overwrite: bool = False,
    progress: OnProgress | None = None,
) -> Run | StoredRun | SweepRun | NetworkComparison:
    """Run a scenario or a sweep.

    Settings that can't affect the result are logged as warnings of the logger ``cosim``, before the run.

    Parameters
    ----------
    source
        A YAML file, YAML text (with a line break) or its values, a :class:`Scenario` or a :class:`Sweep`.
    set
        Changes: ``{"jobs[0].iterations": 5}``, or texts as the command line takes them.
    out
        A folder to write the results to; of a sweep its table, CSV and figures.
    resume
        Instead of a source: the folder of a run over a simulator elsewhere that broke off.
    networks
        Run each design on each of these networks; errors are against the last. ``"fair_share,ns3"``, or a
        list of names and mappings.
    vary
        With ``networks``: the designs, ``{"jobs[0].iterations": [1, 2]}``; all combinations.
    alone
        Also run each job by itself: slowdowns and Jain's index.
    open_loop
        Also replay, on the same network, the messages of a run with these changes, at their times.
    what_matters
        Also run it once for each rate, time and efficiency that it names, with 1 % more of that.
    messages
        Keep every message in the run, whether the scenario writes them or not.
    figure
        A file to draw to, png, svg or pdf: who communicates when; of a sweep its measures.
    engine
        ``"kernel"``, or ``"reference"``: the same results from plain SimPy, slowly, to be stepped through.
    store
        Where runs are kept, and taken from where they are there: a folder, or an address that fsspec knows.
    again
        Run also what the store has.
    executor
        Of a sweep, or of ``networks``: where runs are run, ``"dask://host:8786"``, of `cosim list executor`.
    workers
        The same: processes; 1 if not given. With more, a script needs ``if __name__ == "__main__":``.
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
        Of a scenario.
    StoredRun
        Of a scenario whose run was in the store.
    SweepRun
        Of a sweep, also where it is a file (which types can't tell: :func:`cosim.sweep` is typed so).
    NetworkComparison
        With ``networks``.

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
    >>> both = cosim.run(text, networks=["congestion_unaware", "congestion_aware"])
    >>> both.times("congestion_unaware")
    [600000000.0]
    """
    given = {
        "source": source,
        "set": set,
        "out": out,
        "networks": networks,
        "vary": vary,
        "alone": alone,
        "open_loop": open_loop is not None,
        "what_matters": what_matters,
        "messages": messages,
        "figure": figure,
        "engine": engine,
        "store": store,
        "again": again,
        "executor": executor,
        "workers": workers,
    }
    if resume is not None:
        _refuse("resume, which goes on as the run began", given, _BESIDE)
        from cosim.experiment.resume import load_unfinished

        scenario, out = load_unfinished(resume), resume
    elif source is None:
        raise InputError("give a scenario or a sweep, or resume with the folder of a run that broke off")
    else:
        scenario_or_sweep = read_source(source, set)
        if not isinstance(scenario_or_sweep, Scenario):
            from cosim.experiment.executors.contract import read_executor
            from cosim.experiment.trials import run_sweep

            _refuse("a sweep", given, given.keys() - {"networks", "vary", "engine", *_BESIDE} | {"figure"})
            with allowing_large(allow_large):
                return run_sweep(
                    scenario_or_sweep,
                    out,
                    figure=figure,
                    store=store,
                    again=again,
                    executor=read_executor(executor),
                    workers=workers,
                    overwrite=overwrite,
                    progress=progress,
                )
        scenario = scenario_or_sweep
        if networks is not None:
            from cosim.experiment.executors.contract import read_executor
            from cosim.experiment.networks import run_networks

            _refuse(
                "networks",
                given,
                {"source", "set", "networks", "vary", "store", "again", "executor", "workers"},
            )
            with allowing_large(allow_large):
                return run_networks(
                    scenario,
                    networks,
                    vary,
                    store=store,
                    again=again,
                    executor=read_executor(executor),
                    workers=workers,
                    progress=progress,
                )
        _refuse("a run on one network", given, {"source", "set", "out", "engine", "store", "again", *_BESIDE})
    with allowing_large(allow_large):
        return run_scenario(
            scenario,
            out,
            resume=resume is not None,
            store=store,
            again=again,
            messages=messages,
            alone=alone,
            open_loop=open_loop,
            what_matters=what_matters,
            figure=figure,
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
    out, store, again, executor, workers, allow_large, progress
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
            progress=progress,
        )


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


def _refuse(what: str, given: Mapping[str, object], takes: AbstractSet[str]) -> None:
    """Refuse the first parameter that doesn't go with what is run."""
    for name, value in given.items():
        if value and name not in takes:
            fits = ", ".join(one for one in given if one in takes)
            raise InputError(f"{name} doesn't go with {what}: that takes {fits}")
