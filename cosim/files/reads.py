"""Which files a run reads: what Python opens and lists meanwhile, in whatever thread.

A scenario names files, those name others, plug-ins open what they like: what was read is known for certain
only by watching. So a run is stored with the state of every file that it read, and it answers a question
again while all of them are as they were (as ccache's manifests have it). What a plug-in may read past
Python's own ``open`` is not seen here: :mod:`cosim.experiment.store.closed` looks for that in its source.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import sys
import sysconfig
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from cosim.errors import InputError, Location

_WRITES = os.O_WRONLY | os.O_RDWR
_YOUNG_NS = 2 * 10**9
"""A file that has changed since then may change again without another time: clocks of file systems tick."""
_CACHES = (".nbi", ".nbc", ".pyc")
"""Files of compiled code, of a plug-in's too: any run may write them."""


PLUGINS: set[str] = set()
"""Files of plug-ins, and folders of those that come in packages."""
_PAST = {
    "subprocess.Popen": "starts a program",
    "os.system": "starts a program",
    "os.exec": "starts a program",
    "os.posix_spawn": "starts a program",
    "os.fork": "starts a process",
    "sqlite3.connect": "opens a database",
    "socket.connect": "reads from elsewhere",
}
"""Events after which nobody knows what a script read."""
_VARIABLE = "environment:"
_LIBRARY = (sysconfig.get_path("stdlib"), str(Path(__file__).resolve().parents[1]))
_IMPORTS = "<frozen importlib._bootstrap_external>"
"""Looks for modules: what an import finds is read, too."""
_SYSTEM = ("/proc/", "/sys/", "/dev/")
"""What lies there is no file: it says something else each time."""


@dataclass
class Reads:
    """Absolute paths: files that were opened for reading, or made here, folders listed.

    ``unclear``: what a plug-in or a script did after which nobody knows what it read; empty: nothing.
    ``who``: did it. ``variables``: of the environment. ``script``: lines that are of no package are a
    script's, which may start programs.
    """

    opened: set[str] = field(default_factory=set)
    own: set[str] = field(default_factory=set)
    listed: set[str] = field(default_factory=set)
    unclear: str = ""
    who: str = "a plug-in"
    variables: set[str] = field(default_factory=set)
    script: bool = False

    def states(self, base: Path) -> dict[str, str]:
        """The state of what was read, by its path from ``base`` (absolute outside of it).

        What belongs to Python or its packages is left out: the version stands for it.
        """
        files = self._files()
        folders = {_absolute(path) for path in self.listed}
        root = base.resolve()
        found = [path for path in files if not path.is_dir()]
        found += [path for path in folders if path.is_dir() and not _is_installed(path)]
        named = {_from(root, path): state(path) for path in found}
        named |= {f"{_VARIABLE}{name}": _value(name) for name in self.variables}
        return dict(sorted(named.items()))

    def changed_since(self, time_s: float) -> bool:
        """Whether a file that was read was written to since then (the wall's clock): which was read?"""
        found = [path.stat() for path in self._files() if path.is_file()]
        return any(max(about.st_mtime, about.st_ctime) > time_s for about in found)

    def _files(self) -> set[Path]:
        from cosim.files.folder import MANIFEST, SWAP

        files = {_absolute(path) for path in self.opened} - {_absolute(path) for path in self.own}
        ours = {path for path in files if path.suffix in _CACHES or path.name in (MANIFEST, SWAP)}
        return {path for path in files - ours if not _is_installed(path)}

    def note_open(self, place: str, flags: int) -> None:
        """A file is about to be opened."""
        if place.endswith(_CACHES) and not flags & _WRITES:
            return  # left out below; most of what an import opens
        if place.startswith(_SYSTEM):
            if _by_plugin():
                self.unclear = f"opens {place}"
        elif os.path.isdir(place):  # noqa: PTH112 - bare text
            self.listed.add(place)  # through its descriptor
        elif not flags & _WRITES:
            # One that isn't there counts where a plug-in looks for it: when it comes the run is another.
            if place not in self.own and (os.path.exists(place) or _by_plugin()):  # noqa: PTH110 - bare text
                self.opened.add(place)
        elif place in self.opened or not (flags & os.O_TRUNC or not os.path.exists(place)):  # noqa: PTH110
            if _by_plugin():
                self.unclear = f"writes {place}, which it may read, too"
        else:
            self.own.add(place)


_active: list[Reads] = []


@contextmanager
def reading() -> Iterator[Reads]:
    """Note what this process reads inside, in all its threads: too much rather than too little."""
    _watch()
    reads = Reads()
    _active.append(reads)
    try:
        yield reads
    finally:
        _active[:] = [one for one in _active if one is not reads]


def keep_read(path: Path) -> None:
    """See that a file to be written is none that was read, where somebody is :func:`reading`.

    Raises
    ------
    InputError
        It is: what was read would be replaced.
    """
    try:
        about = path.stat()
    except (OSError, ValueError):
        return
    for place in {place for one in _active for place in one.opened - one.own}:
        with suppress(OSError):
            if os.path.samestat(about, os.stat(place)):  # noqa: PTH116 - bare text
                raise InputError(
                    "is read by this command, and would be replaced",
                    location=Location(str(path)),
                    hint="name another file to write",
                )


def ends_of(path: Path, size: int) -> bytes:
    """The beginning and the end of a file. Looking at it doesn't count as reading it. Raises OSError."""
    known = [(one, set(one.opened)) for one in _active]
    with path.open("rb") as file:
        ends = file.read(size)
        file.seek(max(size, path.stat().st_size - size))
        ends += file.read(size)
    for one, before in known:
        one.opened -= {place for place in one.opened - before if os.path.samefile(place, path)}  # noqa: PTH121
    return ends


def note(
    states: Iterable[str], base: Path, own: Iterable[Path] = (), unclear: str = "", who: str = ""
) -> None:
    """What another process read for who asks, as :meth:`Reads.states` names it from ``base``.

    ``own``: a cache's files, which stand for others; ``unclear``: why it isn't all, by ``who``.
    """
    names = [*states]
    variables = {name.removeprefix(_VARIABLE) for name in names if name.startswith(_VARIABLE)}
    reads = [str(base / name) for name in names if not name.startswith(_VARIABLE)]
    folders = {path for path in reads if os.path.isdir(path)}  # noqa: PTH112 - bare text
    owned = [*map(str, own)]
    for one in _active:
        one.opened.update(path for path in reads if path not in folders)
        one.listed.update(folders)
        one.own.update(owned)
        one.variables.update(variables)
        if unclear:
            one.unclear, one.who = unclear, who


def are_current(states: Mapping[str, str], base: Path) -> bool:
    """Whether all files are as they were."""
    root = base.resolve()
    return all(_now(root, path) == known for path, known in states.items())


def _now(root: Path, path: str) -> str:
    name = path.removeprefix(_VARIABLE)
    return state(root / path) if name == path else _value(name)


def _value(name: str) -> str:
    """A hash of a variable's value; empty where there is none."""
    value = os.environ.get(name)
    return "" if value is None else hashlib.sha256(os.fsencode(value)).hexdigest()


def state(path: Path) -> str:
    """A hash of a file's content, or of the names in a folder; empty where there is neither."""
    try:
        if path.is_dir():
            hidden = (".", "__pycache__")
            names = sorted(one.name for one in path.iterdir() if not one.name.startswith(hidden))
            return hashlib.sha256("\0".join(names).encode("utf-8", "surrogateescape")).hexdigest()
        about = path.stat()
        changed_ns = max(about.st_mtime_ns, about.st_ctime_ns)  # a file can be given any time but the latter
        if time.time_ns() - changed_ns < _YOUNG_NS:
            return _hash(path)
        return _content(path, about.st_ino, about.st_size, changed_ns)
    except OSError:
        return ""


@lru_cache(maxsize=100_000)
def _content(path: Path, *known: int) -> str:  # noqa: ARG001 - what tells that it changed
    return _hash(path)


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@cache
def _watch() -> None:
    """A hook of the interpreter can't be taken away again: there is one, which mostly looks away."""
    sys.addaudithook(_note)


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if _active and event in _PAST:
        for reads in _active:
            if reads.script and by_script():
                reads.unclear = _PAST[event]
    if not _active or event not in ("open", "os.listdir", "os.scandir", "os.rename"):
        return
    path = arguments[1 if event == "os.rename" else 0]
    if path is None:
        path = "."
    elif not isinstance(path, str | bytes | os.PathLike):  # a descriptor: what it is of was opened before
        return
    # Where it is now: the working folder may be another when somebody looks.
    place = os.path.abspath(os.fsdecode(path))  # noqa: PTH100 - bare text, in every open
    for reads in _active:
        if event == "open":
            reads.note_open(place, arguments[2])
        elif event == "os.rename":
            if place not in reads.opened:
                reads.own.add(place)
        elif inspect.currentframe().f_back.f_code.co_filename != _IMPORTS:  # type: ignore[union-attr]
            reads.listed.add(place)


def by_script() -> bool:
    """Whether a line that is of no package is at work, or Python's own library for it."""
    here = inspect.currentframe()
    while here is not None:
        name = here.f_code.co_filename
        if not name.startswith(("<", *_LIBRARY)) or "site-packages" in name:
            return not _is_installed(Path(name))
        here = here.f_back
    return False


def _by_plugin() -> bool:
    """Whether a plug-in's own lines are at work, in this thread."""
    here = inspect.currentframe()
    while here is not None:
        name = here.f_code.co_filename
        if name in PLUGINS or any(name.startswith(one) for one in PLUGINS if one.endswith(os.sep)):
            return True
        here = here.f_back
    return False


@cache
def _installed() -> tuple[Path, ...]:
    package = Path(__file__).resolve().parents[1]
    # A checkout has these beside the package. The question has the simulator's build, which stands for them.
    adapters = [package.parent / "adapters", package.parent / "proto"]
    paths = [Path(one) for one in sysconfig.get_paths().values()]
    packages = [Path(one) for one in sys.path if one.endswith(("site-packages", "dist-packages"))]
    system = [Path(one) for one in ("/proc", "/sys", "/dev", "/lib")]
    return tuple(one.resolve() for one in (package, *adapters, *paths, *packages, *system))


def _is_installed(path: Path) -> bool:
    return any(path.is_relative_to(root) for root in _installed())


def _absolute(path: str) -> Path:
    return Path(os.path.realpath(path))


def _from(root: Path, path: Path) -> str:
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
