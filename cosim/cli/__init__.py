"""The command ``cosim``.

Exit codes: 0 done; 1 the simulation or a network could not go on; 2 a mistake in what was given; 130
interrupted, by Ctrl-C or SIGTERM (what was computed is kept). Results go to stdout, all else to stderr.

==============  ======================================================================
``new``         new
``run``         run, and sweeps
``runs``        what a store has: list, show, prune
``search``      search
``answers``     compare, list, prove
``analyse``     analyse
``synthesis``   learn, synthesise
``topology``    topology
``topoopt``     topoopt
``report``      report, view, plot
``jobs``        profile, calibrate, translate
``partition``   partition
``fit``         fit, validate
``serve``       serve, conformance, adapters
``interrupts``  signals that end a command, and keep what was computed
``isolate``     ``--isolate``: a command in a process beside this one, with limits, which must say that it
                is through
``options``     options of the commands that have many, or that several commands have
``say``         what the commands say beside their results: to stderr
``trust``       ``--trust``, and the question before code of a stranger is run
==============  ======================================================================
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from io import TextIOWrapper
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from cosim.cli import (
    analyse,
    answers,
    fit,
    jobs,
    new,
    partition,
    report,
    run,
    runs,
    search,
    serve,
    synthesis,
    topology,
    topoopt,
)
from cosim.cli.interrupts import is_of_an_interrupt, keep_when_ended, say_sudden_end
from cosim.cli.say import INTERRUPTED, say
from cosim.cli.trust import asking_first
from cosim.errors import CosimError, InputError
from cosim.files.reads import reading
from cosim.plugin_file import plugin_errors


class _ByTask(TyperGroup):
    """Help that lists commands by what they are for, each with its whole first sentence."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a section for each task."""
        tasks: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command: Any = self.get_command(ctx, name)
            tasks.setdefault(command.rich_help_panel, []).append((name, command.get_short_help_str(200)))
        for task in (*_COMMANDS, *(other for other in tasks if other not in _COMMANDS)):
            with formatter.section(task):
                formatter.write_dl(tasks[task])


app = typer.Typer(
    name="cosim",
    cls=_ByTask,
    help="Training jobs as message-level traffic over a network simulator: how long does an iteration take?",
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
    context: typer.Context,
    version: Annotated[  # noqa: ARG001 - its callback has it
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    context.with_resource(reading())  # what a command reads, it never replaces


_COMMANDS: dict[str, tuple[Callable[..., None], ...]] = {
    "Simulate": (
        new.new,
        asking_first(run.run),
        asking_first(search.search),
        asking_first(topology.topology),
        asking_first(topoopt.topoopt),
    ),
    "See what came out": (answers.compare, report.report, report.view, report.plot, analyse.analyse),
    "Bring a job": (
        jobs.profile,
        partition.partition,
        asking_first(jobs.translate),
        synthesis.learn,
        synthesis.synthesise,
    ),
    "Trust the answer": (asking_first(fit.validate), asking_first(fit.fit), jobs.calibrate, answers.prove),
    "Connect another simulator": (serve.serve, serve.conformance),
    "Look up": (answers.schema,),
}
for _task, _commands in _COMMANDS.items():
    for _command in _commands:
        app.command(rich_help_panel=_task)(plugin_errors()(_command))
app.command("list", rich_help_panel="Look up")(answers.list_names)
app.add_typer(runs.app, name="runs", rich_help_panel="See what came out")
app.add_typer(serve.adapters, name="adapters", rich_help_panel="Connect another simulator")


def main() -> None:
    """Entry point: says a :class:`CosimError` without a traceback; anything else is a defect."""
    if sys.stdout is None:
        say("error: standard output is closed; -q ... > /dev/null says nothing")
        sys.exit(1)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and stream.encoding == "utf-8":
            stream.reconfigure(
                errors="backslashreplace"
            )  # a lone surrogate in a name; JSON writes it so, too
    keep_when_ended()
    say_sudden_end()
    code: int | str | None = 0
    try:
        try:
            app()
        except SystemExit as ended:
            code = ended.code
            if is_of_an_interrupt(ended):
                say("interrupted")
        sys.stdout.flush()
    # Before the command has begun: then it is typer's.
    except KeyboardInterrupt:
        say("interrupted")
        code = INTERRUPTED
    except CosimError as error:
        say(f"error: {error}")
        code = 2 if isinstance(error, InputError) else 1
    except OSError as error:
        code = _no_room(error)
    sys.exit(code)


def _no_room(error: OSError) -> int:
    """A reader that went away ends the command, a full disk is said, as is one that nobody may write to;
    anything else is a defect.
    """
    if str(error.strerror).startswith("No usable temporary directory"):  # of tempfile
        say(f"error: {error.strerror}: name one that can be written to, as in TMPDIR=/run/cosim")
        return 1
    full = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EMFILE, errno.EIO)
    if error.errno not in (errno.EPIPE, *full):
        raise error
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left would fail again at exit
    if error.errno != errno.EPIPE:
        say(f"error: can't write {error.filename or 'the output'}: {error.strerror}")
    return 1
