"""``cosim run``: a scenario, or a sweep."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cosim.cli.say import INTERRUPTED, logged, say

if TYPE_CHECKING:
    from cosim.experiment.simulate import Run
    from cosim.results.networks import NetworkComparison
    from cosim.results.sweep import SweepRun


def run(
    scenario: Annotated[
        Path | None,
        typer.Argument(help="A scenario or a sweep (YAML).", metavar="SCENARIO", show_default=False),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="PATH=VALUE", help="Change a setting: jobs[0].iterations=5. Repeatable."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write summary, columns, timeline (Perfetto) and scenario here."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
    release: Annotated[
        str | None,
        typer.Option(
            metavar="network|engine", help="Who starts dependent messages; the results are the same."
        ),
    ] = None,
    networks: Annotated[
        str | None,
        typer.Option(
            "--network",
            metavar="A,B,...",
            help="Ask each of these networks; answers side by side, errors against the last.",
        ),
    ] = None,
    vary: Annotated[
        list[str] | None,
        typer.Option(
            "--vary", metavar="PATH=V1,V2,...", help="With --network: designs to compare. Repeatable."
        ),
    ] = None,
    open_loop: Annotated[
        list[str] | None,
        typer.Option(
            "--open-loop",
            metavar="PATH=VALUE",
            help="Also replay, on the same network, the messages of a run with this setting, at their times.",
        ),
    ] = None,
    figure: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Draw who communicates when and who has the busiest link: png, svg, pdf."
        ),
    ] = None,
    by_itself: Annotated[
        bool,
        typer.Option("--alone", help="Also run each job by itself: slowdowns and Jain's fairness index."),
    ] = False,
    workers: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Of a sweep: runs at a time; omitted: as many as cores."),
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="No summary, no progress, no warnings.")
    ] = False,
    resume: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Go on with a run over a simulator elsewhere that broke off."),
    ] = None,
) -> None:
    """Run a scenario, or a sweep of runs, and say what came of it."""
    from cosim.experiment import run as experiment
    from cosim.experiment.progress import ProgressBar
    from cosim.experiment.sweep import Sweep
    from cosim.experiment.trials import num_cores

    changes = [*(settings or ()), *([f"release={release}"] if release else ())]
    source = None if scenario is None else experiment.read_source(scenario, changes)
    if isinstance(source, Sweep):
        workers = workers or num_cores()
    call: Callable[..., Run | SweepRun | NetworkComparison] = experiment.run
    with logged(quiet), ProgressBar(shown=not quiet and sys.stderr.isatty()) as bar:
        done = call(
            source,
            changes if source is None else (),
            out,
            resume=resume,
            networks=networks,
            vary=vary or (),
            alone=by_itself,
            open_loop=open_loop or None,
            figure=figure,
            workers=workers,
            progress=bar.show,
        )
    if as_json:
        typer.echo(json.dumps(done.to_json(), indent=1, ensure_ascii=False, allow_nan=False))
    else:
        _print(done, quiet)
    _end(done, out)


def _print(done: Run | SweepRun | NetworkComparison, quiet: bool) -> None:
    from cosim.experiment.simulate import Run
    from cosim.results.render.terminal import show
    from cosim.results.render.text import text

    if not isinstance(done, Run):
        if not quiet:
            typer.echo(done, nl=False)
        return
    if not quiet:
        show(done.summary)
    if beside := done.page_beside():  # asked for by name, so that --quiet doesn't mean it
        typer.echo("\n" + text(beside), nl=False)


def _end(done: Run | SweepRun | NetworkComparison, out: Path | None) -> None:
    """What is wrong with it, and the exit code for that."""
    from cosim.experiment.simulate import Run
    from cosim.results.sweep import SweepRun

    if isinstance(done, Run) and done.scenario.record.messages and out is None and not done.interrupted:
        place = done.scenario.locate("record", "messages")
        say(f"warning: {place}: has no effect: messages are written with --out only")
    if done.interrupted:
        say(f"interrupted: {done.interrupted}; what was computed until then is kept")
        raise typer.Exit(INTERRUPTED)
    if isinstance(done, SweepRun) and done.failed:
        say(f"error: {len(done.failed)} of {len(done.runs)} runs could not go on")
        raise typer.Exit(1)
