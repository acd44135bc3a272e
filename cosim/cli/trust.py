"""``--trust``, and the question before code of a stranger is run."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer

from cosim.cli.say import say
from cosim.files.trust import guarded

_Trust = Annotated[
    bool,
    typer.Option("--trust", help="Run the code that the scenario names, and trust its folder from now on."),
]


def asking_first(command: Callable[..., None]) -> Callable[..., None]:
    """A command that reads a scenario: with ``--trust``, and asked before what it names is run."""

    @wraps(command)
    def asks(*given: Any, trust: bool, **named: Any) -> None:
        with guarded(accepted=trust, ask=_ask if sys.stdin is not None and sys.stdin.isatty() else None):
            command(*given, **named)

    signature = inspect.signature(command, eval_str=True)
    option = inspect.Parameter("trust", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=_Trust)
    asks.__annotations__ = {**command.__annotations__, "trust": _Trust}
    asks.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*signature.parameters.values(), option]
    )
    return asks


def _ask(question: str) -> bool:
    """Put it on the terminal; anything but yes is no, also where nothing can be seen of the question."""
    if not sys.stderr.isatty():
        say("error: its code is asked about on standard error, which is no terminal: say --trust")
        return False
    say(f"{question} [y/N]")
    return sys.stdin.readline().strip().lower() in ("y", "yes")
