"""``cosim fit`` and ``cosim validate``: measured jobs beside simulated ones."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cosim.cli.say import say
from cosim.errors import InputError


def fit(
    scenario: Annotated[
        Path | None,
        typer.Argument(metavar="[SCENARIO]", help="Of the job that was measured.", show_default=False),
    ] = None,
    measured: Annotated[
        str | None, typer.Option(metavar="TIME", help="An iteration of its first job, 1.155s.")
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option(metavar="CSV", help="Several jobs instead: scenario, measured, settings by path."),
    ] = None,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="FILE", help="The GPU's file.")] = Path(
        "gpu.yaml"
    ),
) -> None:
    """Set a GPU's numbers by measured jobs: which the measurements tell apart, error before and after."""
    from cosim.experiment.measured_jobs import MeasuredJob, fitted_table, read_jobs, seconds_of
    from cosim.experiment.measured_jobs import fit as fitted_to
    from cosim.gpu.calibrate import write_table

    if (table is None) == (scenario is None or measured is None):
        raise InputError("give a scenario and --measured TIME, or --table CSV")
    jobs = read_jobs(table) if table is not None else []
    if scenario is not None and measured is not None:
        jobs = [MeasuredJob(scenario, {}, seconds_of(measured))]
    found = fitted_to(jobs)
    typer.echo(str(found))
    write_table(out, fitted_table(found))
    say(f"written to {out}: gpu: {{kind: table, path: {out}}}")


def validate(
    table: Annotated[Path, typer.Argument(metavar="CSV", help="scenario, measured, settings by path.")],
    figure: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw simulated over measured: png, svg or pdf.")
    ] = None,
) -> None:
    """Simulate a table of measured jobs: each one's error, and the mean."""
    from cosim.experiment.measured_jobs import read_jobs
    from cosim.experiment.measured_jobs import validate as simulated

    found = simulated(read_jobs(table))
    typer.echo(str(found))
    if figure is not None:
        found.draw(figure)
