"""Whether code that a file names may be run: asked for by commands, never for who calls cosim from Python.

As with git's ``safe.directory`` and the workspaces of editors, a folder is trusted as a whole, once. Code
that is the user's own runs without a word where nobody sits at a terminal: jobs of a cluster, tests.
"""

from __future__ import annotations

import os
import pwd
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from cosim.errors import InputError, Location
from cosim.files.located_yaml import Document, KeyPath, show_path

Ask = Callable[[str], bool]
"""Puts a question to whoever sits at the terminal: whether the answer is yes."""

_CODE_KEYS = frozenset({"command", "script"})
_REMOTE = {"slurm": "options", "dask": "address"}
"""Executors, and their setting through which something else than cosim is run."""
_SHOWN = 20
_MARKS = ("user.xdg.origin.url", "user.xdg.referrer.url")
"""Attributes that browsers and downloaders give a file (freedesktop.org, common extended attributes)."""


class _Guard:
    """What a command was told about trust."""

    def __init__(self, accepted: bool, ask: Ask | None) -> None:
        self.accepted, self.ask = accepted, ask
        self.trusted = [_own_folder(), *_remembered()]


_guard: _Guard | None = None


@contextmanager
def guarded(*, accepted: bool, ask: Ask | None) -> Iterator[None]:
    """Inside, code in folders that are not trusted is asked about before it is run.

    Parameters
    ----------
    accepted
        The user has said yes (``--trust``); the folder is remembered.
    ask
        Asks at the terminal; None where there is none.
    """
    global _guard
    before, _guard = _guard, _Guard(accepted, ask)
    try:
        yield
    finally:
        _guard = before


def check_document(document: Document, base: Path) -> None:
    """Before a scenario or a sweep is read: whether the code that it names may be run.

    Raises
    ------
    InputError
        It may not; says which code, of whom, and what would allow it.
    """
    if _guard is not None and (named := [*_named_code(document, document.value)]):
        file = Path(document.file)
        _check(_guard, file if file.is_file() else base, base, "names code that would be run", named)


def check_file(file: Path) -> None:
    """Before a file of Python is run: the same."""
    if _guard is not None:
        _check(_guard, file, file.parent, "is code that would be run", [])


def _named_code(document: Document, value: object, path: KeyPath = ()) -> Iterator[str]:
    """Everything in a document that names code: where, and what."""
    if isinstance(value, dict):
        remote = _REMOTE.get(str(value.get("kind")))
        for key, one in value.items():
            if (key in _CODE_KEYS or key == remote) and one:
                yield _said(document, (*path, key), one)
            else:
                yield from _named_code(document, one, (*path, key))
    elif isinstance(value, list | tuple):
        for number, one in enumerate(value):
            yield from _named_code(document, one, (*path, number))
    elif isinstance(value, str) and (".py:" in value or value.partition("://")[0] in _REMOTE):
        yield _said(document, path, value)


def _said(document: Document, path: KeyPath, value: object) -> str:
    line = document.locate(path).line
    return f"{document.file}{'' if line is None else f':{line}'}: {show_path(path)}: {value}"


def _check(guard: _Guard, file: Path, folder: Path, what: str, named: Sequence[str]) -> None:
    place = folder.resolve()
    if any(place.is_relative_to(one) for one in guard.trusted):
        return
    unit, foreign = _checkout(place), _foreign(file) or _foreign(place)
    if not guard.accepted:
        if guard.ask is None:
            if not foreign:
                return
            raise InputError(
                f"{what}, and {foreign}{_listed(named, 1)}; look at it, then say --trust",
                location=Location(str(file)),
            )
        why = foreign or "cosim has run none from there before"
        question = f"{file} {what}, and {why}{_listed(named, _SHOWN)}"
        if not guard.ask(f"{question}\nCode can do whatever you can. Run it, {_for_how_long(unit)}?"):
            raise InputError("not run: its code is not trusted", location=Location(str(file)))
    guard.trusted.append(unit)
    if not _is_common(unit):
        _remember(unit)


def _listed(named: Sequence[str], most: int) -> str:
    more = [f"and {len(named) - most} more"] if len(named) > most else []
    between = ": " if most == 1 else "\n  "
    return "".join(f"{between}{one}" for one in [*named[:most], *more])


def _for_how_long(unit: Path) -> str:
    return "this time" if _is_common(unit) else f"now and whatever lies in {unit} later"


def _checkout(folder: Path) -> Path:
    """What is trusted with a folder: the checkout that it lies in, else the folder alone."""
    for one in (folder, *folder.parents):
        if _is_common(one):
            break
        if (one / ".git").exists():
            return one
    return folder


def _is_common(folder: Path) -> bool:
    """Whether all kinds of things lie there: the home, what holds it, and where anybody may write."""
    home = Path(os.path.expanduser("~")).resolve()  # noqa: PTH111 - never an error
    return home.is_relative_to(folder) or bool(folder.stat().st_mode & stat.S_IWOTH)


def _foreign(path: Path) -> str:
    """Why a file or a folder is not the user's own; empty where it is."""
    about = path.stat()
    if about.st_uid not in (os.getuid(), 0):
        return f"{path} is {_name(about.st_uid)}'s"
    with suppress(OSError, AttributeError):  # none is kept, or asked for, on some systems
        if any(mark in os.listxattr(path) for mark in _MARKS):
            return f"{path} was downloaded"
    return ""


def _name(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"


def _own_folder() -> Path:
    """Where cosim itself lies, and in a checkout its scenarios."""
    return Path(__file__).resolve().parents[2]


def trusted_file() -> Path:
    """The list of trusted folders, one a line: ``XDG_CONFIG_HOME/cosim/trusted``, by default in ~/.config."""
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")  # noqa: PTH111
    return Path(base) / "cosim" / "trusted"


def _remembered() -> list[Path]:
    try:
        lines = trusted_file().read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return []
    return [Path(line) for line in lines if line.startswith("/")]


def _remember(folder: Path) -> None:
    with suppress(OSError):  # a home that can't be written to: asked again the next time
        file = trusted_file()
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a", encoding="utf-8", errors="surrogateescape") as lines:
            lines.write(f"{folder}\n")
