"""The command ``cosim``.

Exit codes: 0 done; 1 the simulation or a network could not go on; 2 a mistake in what was given; 130
interrupted (what was computed is kept). Results go to stdout, everything else to stderr.

===============  =========================================
``run``          run, and sweeps
``answers``      compare, list, prove
``jobs``         profile, calibrate, translate
``networks``     serve, conformance, adapters
===============  =========================================
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from cosim.cli import answers, jobs, networks, run
from cosim.cli.say import say
from cosim.errors import CosimError, InputError

app = typer.Typer(
    name="cosim",
    help="Training jobs as message-level traffic over a network simulator: how long does an iteration take?",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(asked: bool) -> None:
    if asked:
        import cosim

        typer.echo(f"cosim {cosim.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say the version and stop.")
    ] = False,
) -> None:
    pass


for _command in (
    run.run,
    answers.compare,
    answers.schema,
    jobs.translate,
    answers.prove,
    networks.serve,
    networks.conformance,
    jobs.calibrate,
    jobs.profile,
):
    app.command()(_command)
app.command("list")(answers.list_names)
app.add_typer(networks.adapters, name="adapters")


def main() -> None:
    """Entry point: says a :class:`CosimError` without a traceback; anything else is a defect."""
    try:
        app()
    except CosimError as error:
        say(f"error: {error}")
        sys.exit(2 if isinstance(error, InputError) else 1)
