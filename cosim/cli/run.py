"""``cosim run``: a scenario, or a sweep."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from cosim.cli.say import INTERRUPTED, say
from cosim.errors import InputError


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
    from cosim.experiment import resume as unfinished
    from cosim.experiment.build import build
    from cosim.experiment.progress import ProgressBar
    from cosim.experiment.run import simulate
    from cosim.experiment.save import prepare
    from cosim.experiment.scenario import load

    changes = [*(settings or ()), *([f"release={release}"] if release else ())]
    not_of_sweeps = {
        "--network": networks,
        "--vary": vary,
        "--open-loop": open_loop,
        "--figure": figure,
        "--alone": by_itself,
        "--resume": resume,
    }
    if scenario is not None and _run_sweep(
        scenario, [*(settings or ())], out, as_json, quiet, workers, {**not_of_sweeps, "--release": release}
    ):
        return
    if (scenario is None) == (resume is None):
        raise InputError("give a scenario, or --resume with the folder of a run that broke off")
    if resume is not None and (changes or out is not None):
        raise InputError("--resume goes on as the run began: without --set, --release and --out")
    if resume is not None:
        out = resume
        loaded = unfinished.load_unfinished(resume)
    else:
        assert scenario is not None
        loaded = load(scenario, changes)
    if networks is not None or vary:
        from cosim.experiment.networks import ask_all

        if networks is None or resume is not None or out is not None or open_loop:
            raise InputError("--network and --vary go together, and without --out, --resume and --open-loop")
        asked = ask_all(loaded, networks, vary or (), None if quiet else say)
        typer.echo(
            json.dumps(asked.to_json(), indent=1, ensure_ascii=False, allow_nan=False)
            if as_json
            else str(asked)
        )
        return
    built = build(loaded)
    if out is not None:
        prepare(out, loaded)
    if resume is not None:
        unfinished.go_on(built.network, resume)
    elif out is not None:
        unfinished.keep_log(built.network, loaded, out)
    if not quiet:
        idle = f"{loaded.locate('record', 'messages')}: has no effect: messages are written with --out only"
        for warning in [*built.warnings, *([idle] if loaded.record.messages and out is None else ())]:
            say(f"warning: {warning}")
    with ProgressBar(shown=not quiet and sys.stderr.isatty()) as bar:
        keep = bool(open_loop) or figure is not None
        done = simulate(loaded, built, progress=bar.update, keep_messages=keep)
    if out is not None:
        done.save(out)
        if not done.records.interrupted:
            unfinished.finished(out)
        if not quiet:
            say(f"written to {out}")
    if as_json:
        typer.echo(json.dumps(done.summary.to_json(), indent=1, ensure_ascii=False, allow_nan=False))
    elif not quiet:
        from cosim.results.terminal import show

        show(done.summary)
    own: dict[str, float] = {}
    if by_itself and not done.records.interrupted:
        from cosim.experiment.alone import alone, render_alone

        own = alone(loaded)
        typer.echo(f"\n{render_alone(done.summary, own)}", nl=False)
    if figure is not None:
        from cosim.results.sharing_figure import draw_sharing

        draw_sharing(done.records, loaded.name, figure, done.summary.overlap, own)
        if not quiet:
            say(f"drawn: {figure}")
    if open_loop and not done.records.interrupted:
        from cosim.experiment.open_loop import compare_loops

        typer.echo(f"\n{compare_loops(loaded, open_loop, done)}", nl=False)
    if done.records.interrupted:
        say(f"interrupted: {done.records.interrupted}; what was computed until then is kept")
        raise typer.Exit(INTERRUPTED)


def _run_sweep(
    path: Path,
    changes: list[str],
    out: Path | None,
    as_json: bool,
    quiet: bool,
    workers: int | None,
    others: dict[str, object],
) -> bool:
    """Run a file that is a sweep; whether it is one."""
    from cosim.experiment.sweep import is_sweep, load_sweep
    from cosim.files.located_yaml import read

    if not is_sweep(read(path)):
        if workers is not None:
            raise InputError(f"{path} is one run, not a sweep: --workers has nothing to share out")
        return False
    if given := [option for option, value in others.items() if value]:
        raise InputError(f"{path} is a sweep: {given[0]} doesn't go with it")
    from cosim.experiment.progress import ProgressBar
    from cosim.experiment.trials import num_cores, run_sweep, save_trials

    loaded = load_sweep(path, changes)
    with ProgressBar(shown=not quiet and sys.stderr.isatty()) as bar:
        trials = run_sweep(
            loaded,
            lambda done, trial: bar.show(
                done, loaded.num_runs, f"run {done} of {loaded.num_runs}: {' / '.join(trial.labels)}"
            ),
            workers=workers or num_cores(),
        )
    if as_json:
        typer.echo(json.dumps(trials.to_json(), indent=1, ensure_ascii=False, allow_nan=False))
    elif not quiet:
        typer.echo(trials, nl=False)
    if out is not None:
        written = save_trials(trials, out)
        if not quiet:
            say(f"written to {out}: {', '.join(place.name for place in written)}")
    if trials.interrupted:
        say(f"interrupted: {len(trials.trials)} of {loaded.num_runs} runs are kept")
        raise typer.Exit(INTERRUPTED)
    if trials.failed:
        say(f"error: {len(trials.failed)} of {len(trials.trials)} runs could not go on")
        raise typer.Exit(1)
    return True
