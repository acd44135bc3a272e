"""``cosim fit`` and ``cosim validate``: measured jobs beside simulated ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from cosim.cli.say import say
from cosim.cli.trust import asking_first
from cosim.errors import InputError


@asking_first
def fit(
    scenario: Annotated[
        Path | None,
        typer.Argument(metavar="[SCENARIO]", help="The scenario of the measured job.", show_default=False),
    ] = None,
    measured: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="The measured iteration of its first job, such as 1.155s."),
    ] = None,
    kineto: Annotated[
        Path | None,
        typer.Option(metavar="TRACE", help="A trace of torch.profiler: iterations, and kernels by kind."),
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option(
            metavar="CSV", help="A table of jobs instead: scenario, measured, kineto, settings by path."
        ),
    ] = None,
    nccl_tests: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="TEXT", help="What nccl-tests printed on the scenario's hosts: the fabric instead."
        ),
    ] = None,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="FILE", help="The file to write.")] = Path(
        "gpu.yaml"
    ),
) -> None:
    """Set a GPU's numbers, and its host's, by measured jobs, and print the error before and after."""
    from cosim.experiment.fit_gpu import fit as fitted_to
    from cosim.experiment.fit_gpu import fitted_table
    from cosim.experiment.measured_jobs import MeasuredIteration, MeasuredJob, read_jobs, seconds_of
    from cosim.files.whole import keep_others
    from cosim.formats.pytorch.kernel_times import read_iteration
    from cosim.gpu.calibrate import TABLE_HEAD, write_table

    if nccl_tests:
        if scenario is None or measured or kineto or table:
            raise InputError(
                "--nccl-tests goes with a scenario, and without --measured, --kineto and --table"
            )
        _fit_fabric(scenario, nccl_tests)
        return
    if (table is None) == (scenario is None or (measured is None and kineto is None)):
        raise InputError("give a scenario and --measured TIME or --kineto TRACE, or --table CSV")
    keep_others(out, TABLE_HEAD, "table")
    jobs = read_jobs(table, read_iteration) if table is not None else []
    if scenario is not None:
        iteration = MeasuredIteration(0.0) if kineto is None else read_iteration(kineto)
        if measured is not None:  # the profiler takes time itself
            iteration = replace(iteration, seconds=seconds_of(measured))
        jobs = [MeasuredJob(scenario, {}, iteration)]
    found = fitted_to(jobs)
    typer.echo(str(found))
    write_table(out, fitted_table(found))
    instead = "; its host is in it, in place of `host:`" if any(job.host() for job in jobs) else ""
    say(f"written to {out}: gpu: {{kind: table, path: {out}}}{instead}")


def _fit_fabric(scenario: Path, texts: list[Path]) -> None:
    from cosim.experiment.fit_fabric import fit_fabric
    from cosim.experiment.scenario import load
    from cosim.formats.nccl_tests.text import read_test

    typer.echo(str(fit_fabric(load(scenario), [read_test(text) for text in texts])))


@asking_first
def validate(
    table: Annotated[
        Path, typer.Argument(metavar="CSV", help="A CSV with scenario, measured, and settings by path.")
    ],
    figure: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw simulated over measured: png, svg or pdf.")
    ] = None,
) -> None:
    """Simulate a table of measured jobs, and print each error and the mean."""
    from cosim.experiment.measured_jobs import read_jobs
    from cosim.experiment.measured_jobs import validate as simulated
    from cosim.formats.pytorch.kernel_times import read_iteration

    if figure is not None:
        from cosim.results.render.figure import check_figure

        check_figure(figure)
    found = simulated(read_jobs(table, read_iteration))
    typer.echo(str(found))
    if figure is not None:
        found.draw(figure)
