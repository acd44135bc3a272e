"""Which files a run reads: what Python opens and lists meanwhile.

A scenario names files, those name others, plug-ins open what they like: what was read is known for certain
only by watching. So a run is stored with the state of every file that it read, and it answers a question
again while all of them are as they were (as ccache's manifests have it). A file that was looked for and
wasn't there, in a folder that wasn't listed, is not noticed when it comes.
"""

from __future__ import annotations

import hashlib
import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from cosim.files.folder import MANIFEST, SWAP

_WRITES = os.O_WRONLY | os.O_RDWR
_CACHES = (".nbi", ".nbc", ".pyc")
"""Files of compiled code, of a plug-in's too: any run may write them."""


@dataclass
class Reads:
    """Paths, as they were given: files that were opened for reading, or for writing, folders listed."""

    opened: set[str] = field(default_factory=set)
    written: set[str] = field(default_factory=set)
    listed: set[str] = field(default_factory=set)

    def states(self, base: Path) -> dict[str, str]:
        """The state of what was read and is still there, by its path from ``base`` (absolute outside of it).

        What belongs to Python, its packages or the system is left out: the version stands for it.
        """
        files = self._files()
        folders = {_absolute(path) for path in self.listed} - {_absolute(path) for path in sys.path}
        root = base.resolve()
        found = [path for path in files if path.is_file()]
        found += [path for path in folders if path.is_dir() and not _is_installed(path)]
        named = {_from(root, path): state(path) for path in found}
        return dict(sorted(named.items()))

    def changed_since(self, time_s: float) -> bool:
        """Whether a file that was read was written to since then (the wall's clock): which was read?"""
        return any(path.stat().st_mtime > time_s for path in self._files() if path.is_file())

    def _files(self) -> set[Path]:
        files = {_absolute(path) for path in self.opened} - {_absolute(path) for path in self.written}
        ours = {path for path in files if path.suffix in _CACHES or path.name in (MANIFEST, SWAP)}
        return {path for path in files - ours if not _is_installed(path)}


_reads: ContextVar[Reads | None] = ContextVar("reads", default=None)


@contextmanager
def reading() -> Iterator[Reads]:
    """Note what this thread reads inside."""
    _watch()
    reads = Reads()
    before = _reads.set(reads)
    try:
        yield reads
    finally:
        _reads.reset(before)


def note(read: Iterable[Path], own: Iterable[Path] = ()) -> None:
    """Files that another process read for who asks; ``own``: a cache's, which stand for others."""
    if (reads := _reads.get()) is not None:
        reads.opened.update(map(str, read))
        reads.written.update(map(str, own))


def are_current(states: Mapping[str, str], base: Path) -> bool:
    """Whether all files are as they were."""
    root = base.resolve()
    return all(state(root / path) == known for path, known in states.items())


def state(path: Path) -> str:
    """A hash of a file's content, or of the names in a folder; empty where there is neither."""
    try:
        if path.is_dir():
            hidden = (".", "__pycache__")
            names = sorted(one.name for one in path.iterdir() if not one.name.startswith(hidden))
            return hashlib.sha256("\0".join(names).encode("utf-8", "surrogateescape")).hexdigest()
        about = path.stat()
        return _content(path, about.st_size, about.st_mtime_ns)
    except OSError:
        return ""


@lru_cache(maxsize=100_000)
def _content(path: Path, size: int, modified_ns: int) -> str:  # noqa: ARG001 - what tells that it changed
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@cache
def _watch() -> None:
    """A hook of the interpreter can't be taken away again: there is one, which mostly looks away."""
    sys.addaudithook(_note)


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if event not in ("open", "os.listdir", "os.scandir") or (reads := _reads.get()) is None:
        return
    path = arguments[0]
    if not isinstance(path, str | os.PathLike):  # a descriptor: what it is of was opened before
        return
    place = os.fspath(path)
    if not isinstance(place, str):
        place = os.fsdecode(place)
    if event != "open":
        reads.listed.add(place)
    elif arguments[2] & _WRITES:
        reads.written.add(place)
    else:
        reads.opened.add(place)


@cache
def _installed() -> tuple[Path, ...]:
    package = Path(__file__).resolve().parents[2]
    # Of a checkout; the simulator's build in the question stands for them, wherever they lie.
    adapters = [package.parent / "adapters", package.parent / "proto"]
    paths = [Path(one) for one in sysconfig.get_paths().values()]
    packages = [Path(one) for one in sys.path if one.endswith(("site-packages", "dist-packages"))]
    system = [Path(one) for one in ("/proc", "/sys", "/dev", "/etc", "/usr", "/lib")]
    return tuple(one.resolve() for one in (package, *adapters, Path(sys.prefix), *paths, *packages, *system))


def _is_installed(path: Path) -> bool:
    return any(path.is_relative_to(root) for root in _installed())


def _absolute(path: str) -> Path:
    return Path(os.path.realpath(path))


def _from(root: Path, path: Path) -> str:
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
