"""The command line's page: every command, argument and option, as ``--help`` has them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from gallery_pages import put
from sphinx.application import Sphinx

from cosim.cli import app as cosim_app


def _commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    inner = getattr(command, "commands", None)
    if inner is None:
        yield path, command
        return
    for name, one in inner.items():
        yield from _commands(one, f"{path} {name}")


def _escape(text: str) -> str:
    """Plain text as Markdown; what stands in `...` stays code."""
    parts = re.split(r"(`[^`]*`)", " ".join(text.split()))
    return "".join(one if one.startswith("`") else re.sub(r"([<*_\[\]{}$])", r"\\\1", one) for one in parts)


def _parameter(one: Any) -> str:
    told = getattr(one, "help", None) or ""
    metavar = one.metavar or ("" if getattr(one, "is_flag", False) else one.name.upper())
    if one.param_type_name == "argument":
        head = f"`{metavar}`"
    else:
        head = f"`{', '.join(one.opts)}{' ' + metavar if metavar else ''}`"
    if one.default not in (None, False, (), []) and not callable(one.default) and "default" not in told:
        told += f" Default: `{one.default}`."
    return f"{head}\n: {_escape(told) or ' '}\n"


def page() -> str:
    """The page's text."""
    parts = [
        "# Command line\n",
        "Results go to stdout, everything else to stderr. Exit codes: 0 done; 1 the simulation or a "
        "network could not go on, or a proof failed; 2 a mistake in what was given; 130 interrupted (what "
        "was computed is kept).\n",
    ]
    for path, command in _commands(typer.main.get_command(cosim_app), "cosim"):
        shown = [one for one in command.params if one.name != "help" and not getattr(one, "hidden", False)]
        parts += [f"## {path}\n", f"{_escape(command.help or '')}\n", *map(_parameter, shown)]
    return "\n".join(parts)


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this."""
    target = Path(app.srcdir) / "reference" / "names" / "command-line.md"
    app.connect("builder-inited", lambda _: put(target, page()))
    return {"parallel_read_safe": True}
