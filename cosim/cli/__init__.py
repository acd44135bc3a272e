"""The command ``cosim``.

Exit codes: 0 done; 1 the simulation or a network could not go on; 2 a mistake in what was given; 130
interrupted, by Ctrl-C or SIGTERM (what was computed is kept). Results go to stdout, all else to stderr.

==============  ======================================================================
``new``         new
``run``         run, and sweeps
``runs``        what a store has: list, show, prune
``search``      search
``study``       study
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
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from io import TextIOWrapper
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from cosim.cli.interrupts import is_of_an_interrupt, keep_when_ended, say_sudden_end
from cosim.cli.say import INTERRUPTED, say
from cosim.errors import CosimError, InputError

_TASKS = {
    "Simulate": "new run study search topology topoopt",
    "See what came out": "compare report view plot analyse runs",
    "Bring a job": "profile partition translate learn synthesise",
    "Trust the answer": "validate fit calibrate prove",
    "Connect another simulator": "serve conformance adapters",
    "Look up": "schema list",
}
"""Commands by what they are for."""

_MADE_IN = {
    "new": "new",
    "run": "run",
    "study": "study",
    "search": "search",
    "topology": "topology",
    "topoopt": "topoopt",
    "compare": "answers",
    "report": "report",
    "view": "report",
    "plot": "report",
    "analyse": "analyse",
    "profile": "jobs",
    "partition": "partition",
    "translate": "jobs",
    "learn": "synthesis",
    "synthesise": "synthesis",
    "validate": "fit",
    "fit": "fit",
    "calibrate": "jobs",
    "prove": "answers",
    "serve": "serve",
    "conformance": "serve",
    "schema": "answers",
    "list": "answers",
    "runs": "runs",
    "adapters": "serve",
}
"""The module of each command, imported when somebody asks for the command; completion offers this order."""


@cache
def _command(name: str) -> Any:
    """A command, or a group of commands, of its module's function or ``Typer`` of that name."""
    from cosim.plugin_file import plugin_errors

    module = import_module(f"cosim.cli.{_MADE_IN[name]}")
    found = getattr(module, "list_names" if name == "list" else name)  # list is a word of Python's
    one = typer.Typer(rich_markup_mode=None)
    one.callback()(_nothing)  # so that the command keeps its name
    if isinstance(found, typer.Typer):
        one.add_typer(found, name=name)
    else:
        one.command(name)(plugin_errors()(found))
    group: Any = typer.main.get_command(one)
    return group.commands[name]


def _nothing() -> None:
    pass


class _Commands(Mapping[str, Any]):
    """Every command by its name."""

    def __getitem__(self, name: str) -> Any:
        if name not in _MADE_IN:
            raise KeyError(name)
        return _command(name)

    def __iter__(self) -> Iterator[str]:
        return iter(_MADE_IN)

    def __len__(self) -> int:
        return len(_MADE_IN)


class _ByTask(TyperGroup):
    """Commands that are imported one at a time; help lists them by what they are for, each with its whole
    first sentence.
    """

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.commands: Any = _Commands()

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """Every name, without importing what it stands for."""
        return [*self.commands]

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        """Write a section for each task."""
        for task, names in _TASKS.items():
            rows = [(name, self.commands[name].get_short_help_str(200)) for name in names.split()]
            with formatter.section(task):
                formatter.write_dl(rows)


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
    from cosim.files.reads import reading

    context.with_resource(reading())  # what a command reads, it never replaces


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
