"""``cosim search``: the best choice of a sweep, without running all of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from cosim.cli import options
from cosim.cli.say import INTERRUPTED, logged, say

_Objective = Annotated[
    str, typer.Option(metavar="MEASURE", help="Of `cosim list sweep`; omitted: the sweep's first.")
]
_Runs = Annotated[int | None, typer.Option(metavar="N", min=1, help="Points to run at most.")]
_Optimizer = Annotated[
    str, typer.Option(metavar="NAME", help="bounds: the least bound first; all; optuna: its sampler.")
]


def search(
    design: Annotated[
        Path, typer.Argument(help="A sweep (YAML): its axes are what to choose.", metavar="SWEEP")
    ],
    settings: options.Settings = None,
    objective: _Objective = "",
    runs: _Runs = None,
    optimizer: _Optimizer = "bounds",
    store: options.Store = None,
    executor: options.ExecutorName = None,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Find the best choice of a sweep; what can't be is refused, what can't win isn't run."""
    from cosim.experiment.progress import ProgressBar
    from cosim.experiment.run import read_executor
    from cosim.experiment.search import search as searching
    from cosim.results.render.terminal import show_page

    sweep = searching.read_design(design, settings or ())
    with logged(quiet), ProgressBar(shown=not quiet) as bar:
        done = searching.search(
            sweep,
            objective,
            runs=runs,
            optimizer=optimizer,
            store=store,
            executor=read_executor(executor),
            progress=bar.show,
        )
    if as_json:
        typer.echo(json.dumps(done.to_json(), indent=1, ensure_ascii=False, allow_nan=False))
    elif not quiet:
        show_page(done.page())
    if done.interrupted:
        say("interrupted; what was run until then is kept")
        raise typer.Exit(INTERRUPTED)
    if done.best is None:
        say("error: no point could go on")
        raise typer.Exit(1)
