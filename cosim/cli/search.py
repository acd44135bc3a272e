"""``cosim search``: the best choice of a design, without running all of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cosim.cli import options
from cosim.cli.say import end_if_interrupted, logged, print_json, say
from cosim.cli.trust import asking_first

_Objectives = Annotated[
    list[str] | None,
    typer.Option(
        "--objective",
        metavar="QUANTITY",
        help="Use this objective instead of the design's; several give a front.",
    ),
]
_Runs = Annotated[int | None, typer.Option(metavar="N", min=1, help="Run at most this many points.")]
_OptimizerName = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Choose the next point by this one of `cosim list optimizer`, or {kind: NAME ...}.",
    ),
]


@asking_first
def search(
    design: Annotated[
        Path, typer.Argument(help="A design (YAML): a sweep whose axes are the choices.", metavar="DESIGN")
    ],
    settings: options.Settings = None,
    objective: _Objectives = None,
    runs: _Runs = None,
    optimizer: _OptimizerName = None,
    store: options.Store = None,
    executor: options.ExecutorName = None,
    report: options.Report = None,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Find the best choice of a design. Points that cannot be, or cannot win, are not run."""
    from cosim.experiment.progress import ProgressBar
    from cosim.experiment.search.search import search as searching
    from cosim.files.located_yaml import parse_value
    from cosim.results.render.terminal import show_page

    if report is not None:
        from cosim.cli.report import keep_page

        keep_page(report)
    with logged(quiet), ProgressBar(shown=not quiet) as bar:
        done = searching(
            design,
            settings or (),
            objective=objective,
            runs=runs,
            optimizer=None if optimizer is None else parse_value(optimizer),
            store=store,
            executor=executor,
            progress=bar.show,
        )
    if as_json:
        print_json(done.to_json())
    elif not quiet:
        show_page(done.page())
    if report is not None:
        say(f"written: {done.report().save(report)}")
    end_if_interrupted(done.interrupted)
    if done.best is None:
        say("error: no point that was run could go on and keeps the constraints")
        raise typer.Exit(1)
