"""``cosim run``: a scenario, or a sweep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import typer

from cosim.cli import options
from cosim.cli.say import end_if_interrupted, logged, print_json, say
from cosim.cli.trust import asking_first
from cosim.errors import InputError

if TYPE_CHECKING:
    from cosim.experiment.scenario import Scenario
    from cosim.experiment.simulate import Run
    from cosim.experiment.sweep import Sweep
    from cosim.results.networks import NetworkComparison
    from cosim.results.render.page import Page
    from cosim.results.stored_run import StoredRun
    from cosim.results.sweep import SweepRun

    Done = Run | StoredRun | SweepRun | NetworkComparison


@asking_first
def run(
    scenario: options.ScenarioOrSweep = None,
    settings: options.Settings = None,
    out: options.RunFolder = None,
    as_json: options.AsJson = False,
    release: options.Release = None,
    engine: options.Engine = None,
    networks: options.Networks = None,
    vary: options.Vary = None,
    open_loop: options.OpenLoop = None,
    figure: options.Figure = None,
    report: options.Report = None,
    by_itself: options.Alone = False,
    what_matters: options.WhatMatters = False,
    measures: options.Measures = None,
    workers: options.Workers = None,
    quiet: options.Quiet = False,
    resume: options.Resume = None,
    store: options.Store = None,
    again: options.Again = False,
    executor: options.ExecutorName = None,
    allow_large: options.AllowLarge = False,
    overwrite: options.Overwrite = False,
    check: options.Check = False,
    isolated: options.Isolate = None,
) -> None:
    """Run a scenario, or a sweep of runs, and print the result."""
    if isolated is not None:
        from cosim.cli.isolate import isolate

        isolate(isolated)
    if scenario is not None and not scenario.exists():
        from cosim.files.located_yaml import read

        read(scenario)  # refused before a simulator is imported
    from cosim.experiment import run as experiment
    from cosim.experiment.progress import ProgressBar

    changes = [*(settings or ()), *([f"release={release}"] if release else ())]
    source = None if scenario is None else experiment.read_source(scenario, changes)
    if check:
        _check_goes_with(source, networks or store)
    studies = _studies(by_itself, open_loop, what_matters)
    what, takes = _kind(source, resume, networks, studies)
    given = {
        "SCENARIO": source, "--set": changes, "--out": out, "--network": networks, "--vary": vary,
        "--alone": by_itself, "--open-loop": open_loop, "--what-matters": what_matters, "--check": check,
        "--figure": figure, "--engine": engine, "--store": store, "--again": again, "--executor": executor,
        "--workers": workers, "--measure": measures, "--report": report,
    }  # fmt: skip
    _refuse(what, given, takes)
    # What can't be printed or written is known before a run that may take hours.
    if measures:
        source = _with_measures(source, measures)
    if figure is not None:
        from cosim.results.render.figure import check_figure

        check_figure(figure)
    if report is not None:
        from cosim.cli.report import keep_page

        keep_page(report)
    kept: dict[str, Any] = {"store": store, "again": again, "allow_large": allow_large}
    where: dict[str, Any] = {"executor": executor, "workers": workers or _cores(source, executor)}
    done: Done
    with logged(quiet), ProgressBar(shown=not quiet) as bar:
        if networks is not None:
            asked = {"kind": "networks", "networks": networks, "vary": vary or ()}
            done = _study(asked, source, **kept, **where, progress=bar.show)
        elif what == _SWEEP:
            done = experiment.sweep(
                cast("Sweep", source), out=out, **kept, **where, overwrite=overwrite, progress=bar.show
            )
        else:
            beside = bool(studies or figure or check)
            done = experiment.run(
                None if resume else cast("Scenario", source),
                (),
                out,
                resume=resume,
                messages=bool(check or figure or open_loop),
                engine=engine,
                overwrite=overwrite,
                progress=bar.show,
                **(kept | {"again": not resume and (again or beside)}),
            )
            if studies:
                _study_beside(done, studies, **kept, **where, progress=bar.show)
    _tell(done, source, measures or (), as_json, quiet)
    if figure is not None:
        drawn = cast("Run | SweepRun", done).draw(figure)
        if not quiet:
            say(f"drawn: {drawn}")
    if check:
        _check(done, quiet)
    if report is not None:
        say(f"written: {cast('Run | StoredRun | SweepRun', done).report().save(report)}")
    _end(done, out or report)


_SWEEP = "a sweep"
_RUNS = {"SCENARIO", "--set", "--store", "--again", "--executor", "--workers"}
"""What goes with several runs."""


def _studies(by_itself: bool, open_loop: list[str] | None, what_matters: bool) -> list[dict[str, Any]]:
    """Those that the short forms ask for, in the order of the page."""
    return [
        *([{"kind": "alone"}] if by_itself else []),
        *([{"kind": "open_loop", "changes": open_loop}] if open_loop else []),
        *([{"kind": "what_matters"}] if what_matters else []),
    ]


def _kind(
    source: Scenario | Sweep | None, resume: Path | None, networks: str | None, studies: list[dict[str, Any]]
) -> tuple[str, set[str]]:
    """What is run, and the options that go with it.

    Raises
    ------
    InputError
        Nothing is.
    """
    from cosim.experiment.scenario import Scenario

    shown = {"--figure", "--measure", "--report"}
    beside = {"--alone", "--open-loop", "--what-matters", "--check", *shown}
    if resume is not None:
        return "--resume", beside
    if source is None:
        raise InputError("give a scenario or a sweep, or --resume with the folder of a run that broke off")
    if not isinstance(source, Scenario):
        return _SWEEP, _RUNS | {"--out"} | shown
    if networks is not None:
        return "--network", _RUNS | {"--network", "--vary"}
    one = {"SCENARIO", "--set", "--store", "--again", "--out", "--engine"} | beside
    return "a run on one network", one | (_RUNS if studies else set())


def _refuse(what: str, given: Mapping[str, object], takes: set[str]) -> None:
    """Refuse the first option that doesn't go with what is run.

    Raises
    ------
    InputError
        Says what does.
    """
    for name, value in given.items():
        if value and name not in takes:
            fits = ", ".join(one for one in given if one in takes)
            raise InputError(f"{name} doesn't go with {what}: that takes {fits}")


def _study(study: Mapping[str, Any], source: Any, **given: Any) -> NetworkComparison:
    from cosim.experiment.studies.perform import study as perform

    found: NetworkComparison = perform(study, source, **given)
    return found


def _study_beside(run: Run, studies: list[dict[str, Any]], **given: Any) -> None:
    """Do studies of a run; an interrupt leaves them out and keeps the run."""
    for study in studies:
        if not run.interrupted:
            try:
                run.interrupted = run.study(study, **given).interrupted
            except KeyboardInterrupt:
                run.interrupted = KeyboardInterrupt.__name__


def _cores(source: Scenario | Sweep | None, executor: str | None) -> int | None:
    """Processes of a sweep that runs on this machine: all its cores."""
    from cosim.experiment.scenario import Scenario

    if source is None or isinstance(source, Scenario) or executor or source.executor:
        return None
    from cosim.experiment.executors.local import num_cores

    return num_cores()


def _with_measures(source: Scenario | Sweep | None, names: list[str]) -> Scenario | Sweep | None:
    """The same, a sweep with these measures.

    Raises
    ------
    InputError
        There is no such measure.
    """
    from cosim.experiment.facts import check_names
    from cosim.experiment.sweep import Sweep

    check_names(names)
    return source.with_settings({"measures": names}) if isinstance(source, Sweep) else source


def _measured(done: Done, source: Scenario | Sweep | None, names: Sequence[str]) -> dict[str, float]:
    """The measures of a run."""
    if not names:
        return {}
    from cosim.experiment.facts import measured
    from cosim.experiment.scenario import Scenario
    from cosim.experiment.simulate import Run
    from cosim.results.stored_run import StoredRun

    if isinstance(done, Run):
        return measured(names, done.scenario, done.summary, done.alone)
    if isinstance(done, StoredRun) and isinstance(source, Scenario):
        return measured(names, source, done.summary)
    return {}


def _tell(
    done: Done, source: Scenario | Sweep | None, names: Sequence[str], as_json: bool, quiet: bool
) -> None:
    """Print what came of it, with these measures; without them if one isn't known of it, which is said."""
    measured: dict[str, float] = {}
    try:
        measured = _measured(done, source, names)
    finally:
        _print(done, as_json, quiet, measured)


def _print_json(done: Done, measures: Mapping[str, float]) -> None:
    from cosim.results.stored_run import StoredRun

    values = done.summary.to_json() if isinstance(done, StoredRun) else done.to_json()
    if measures:
        values["measures"] = dict(measures)
    print_json(values)


def _print(done: Done, as_json: bool, quiet: bool, measures: Mapping[str, float]) -> None:
    if as_json:
        _print_json(done, measures)
        return
    # What a run doesn't need, it doesn't import: results of other kinds are asked for after it.
    from cosim.experiment.simulate import Run
    from cosim.results.render.terminal import show, show_page

    if isinstance(done, Run):
        if not quiet:
            show(done.summary)
        if beside := [*done.page_beside(), *_measures_page(measures)]:  # by name: --quiet doesn't mean it
            typer.echo()
            show_page(beside)
        return
    from cosim.results.networks import NetworkComparison
    from cosim.results.stored_run import StoredRun

    if isinstance(done, StoredRun):
        if not quiet:
            show(done.summary)
        if measures:
            typer.echo()
            show_page(_measures_page(measures))
    elif not quiet or isinstance(done, NetworkComparison):  # asked for by name
        show_page(done.page())


def _measures_page(measures: Mapping[str, float]) -> Page:
    if not measures:
        return []
    from cosim.results.quantities import QUANTITIES
    from cosim.results.render.page import PageTable, Section

    rows = [["measures", "", ""]]
    for name, value in measures.items():
        rows.append([f"  {name}", QUANTITIES[name].unit.show(value), QUANTITIES[name].text])
    return [Section([PageTable(rows, left=(0, 2))])]


def _check_goes_with(source: Scenario | Sweep | None, other: str | None) -> None:
    """Refuse ``--check`` of what is no single run, or can't be too fast.

    Raises
    ------
    InputError
        Says which.
    """
    from cosim.experiment.scenario import Scenario
    from cosim.results.too_fast import SHARES_NOTHING

    if other or not (source is None or isinstance(source, Scenario)):
        raise InputError("--check goes with one run: not with a sweep, a store or several networks")
    if source is not None and source.network.name == SHARES_NOTHING:
        raise InputError(
            f"--check: {source.locate('network')}: {SHARES_NOTHING} gives each message its whole link",
            hint="name a network that shares links: fair_share",
        )


def _check(done: Done, quiet: bool) -> None:
    """Hold a run against what links can deliver."""
    from cosim.experiment.simulate import Run
    from cosim.results.too_fast import too_fast

    assert isinstance(done, Run)
    found = too_fast(done.records)
    for one in found:
        say(f"error: {one}")
    if found:
        raise typer.Exit(1)
    if not quiet:
        say(f"checked: {done.records.num_messages} messages, none faster than its links")


def _end(done: Done, written: Path | None) -> None:
    """What is wrong with it, and the exit code for that."""
    from cosim.experiment.simulate import Run

    if isinstance(done, Run):
        if done.scenario.record.messages and written is None and not done.interrupted:
            place = done.scenario.locate("record", "messages")
            say(f"warning: {place}: has no effect: messages are written with --out or --report only")
        end_if_interrupted(done.interrupted)
        return
    from cosim.results.stored_run import StoredRun
    from cosim.results.sweep import SweepRun

    if not isinstance(done, StoredRun):
        end_if_interrupted(done.interrupted)
    if isinstance(done, SweepRun) and done.failed:
        say(f"error: {len(done.failed)} of {len(done.runs)} runs could not go on")
        raise typer.Exit(1)
