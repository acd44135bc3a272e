"""Where a store lies: a folder of this machine, or any address that fsspec knows (``s3://bucket/runs``)."""

from __future__ import annotations

import os
import tempfile
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cosim.errors import InputError, install_extra

WRITING = ".writing-"
"""How files begin that are not whole yet."""
_LEFT_S = 3600.0
"""A file that has been under way for longer was left by a process that died."""


class StorePlace(ABC):
    """Files by name, ``/`` between folders. Each appears whole or not at all."""

    @abstractmethod
    def read(self, name: str) -> bytes:
        """Its content; OSError where there is none."""

    @abstractmethod
    def write(self, name: str, content: bytes, *, once: bool = False) -> None:
        """Put it there, instead of an older one; or, if that is there in a folder, not at all (``once``: of
        two writers the first). OSError where that can't be done.
        """

    @abstractmethod
    def names(self, folder: str) -> list[str]:
        """Every file below, without those that are being written."""

    @abstractmethod
    def remove(self, name: str) -> None:
        """Take it away, if it is there."""

    def read_all(self, names: Iterable[str]) -> dict[str, bytes]:
        """Content of each; what can't be read is empty."""
        found = {}
        for name in names:
            try:
                found[name] = self.read(name)
            except OSError:
                found[name] = b""
        return found

    def clear(self) -> int:
        """Remove what writers that died have left; how many files."""
        return 0


class _Folder(StorePlace):
    def __init__(self, root: Path) -> None:
        self.root = root

    def read(self, name: str) -> bytes:
        with open(f"{self.root}/{name}", "rb", buffering=0) as file:  # noqa: PTH123 - ten thousand of them
            return file.read()

    def write(self, name: str, content: bytes, *, once: bool = False) -> None:
        target = self.root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, part = tempfile.mkstemp(prefix=WRITING, dir=target.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())  # else a machine that dies leaves a name without content
            Path(part).chmod(0o644)
            if once and _linked(Path(part), target):
                Path(part).unlink()
            else:
                Path(part).replace(target)
        except BaseException:
            Path(part).unlink(missing_ok=True)
            raise

    def names(self, folder: str) -> list[str]:
        found: list[str] = []
        pending = [folder]
        while pending:
            where = pending.pop()
            try:
                with os.scandir(self.root / where) as inside:
                    for one in inside:
                        name = f"{where}/{one.name}"
                        if one.is_dir(follow_symlinks=False):
                            pending.append(name)
                        elif not one.name.startswith(WRITING):
                            found.append(name)
            except FileNotFoundError:
                continue
        return sorted(found)

    def remove(self, name: str) -> None:
        target = self.root / name
        target.unlink(missing_ok=True)
        for folder in target.parents:
            if folder == self.root or folder.parent == self.root:
                break
            try:
                folder.rmdir()
            except OSError:  # it holds others
                break

    def clear(self) -> int:
        old = [
            path
            for path in self.root.rglob(f"{WRITING}*")
            if time.time() - path.stat().st_mtime > _LEFT_S  # wall time: files have no other
        ]
        for path in old:
            path.unlink(missing_ok=True)
        return len(old)


def _linked(part: Path, target: Path) -> bool:
    """Give a file its second name, unless there is one; False: the file system has no second names."""
    try:
        target.hardlink_to(part)
    except FileExistsError:
        pass
    except OSError:
        return False
    return True


class _Address(StorePlace):
    def __init__(self, files: Any, root: str) -> None:
        self._files, self._root = files, root.rstrip("/")

    def _at(self, name: str) -> str:
        return f"{self._root}/{name}"

    def read(self, name: str) -> bytes:
        content: bytes = self._files.cat_file(self._at(name))
        return content

    def write(self, name: str, content: bytes, *, once: bool = False) -> None:  # noqa: ARG002 - no such call
        target = self._at(name)
        folder, _, last = target.rpartition("/")
        part = f"{folder}/{WRITING}{uuid.uuid4().hex}-{last}"
        self._files.makedirs(folder, exist_ok=True)
        self._files.pipe_file(part, content)
        self._files.mv(part, target)

    def names(self, folder: str) -> list[str]:
        self._files.invalidate_cache()
        found = [str(one) for one in self._files.find(self._at(folder))]
        start = len(self._files._strip_protocol(self._root)) + 1
        return sorted(one[start:] for one in found if not one.rpartition("/")[2].startswith(WRITING))

    def remove(self, name: str) -> None:
        if self._files.exists(self._at(name)):
            self._files.rm_file(self._at(name))

    def read_all(self, names: Iterable[str]) -> dict[str, bytes]:
        asked = {self._at(name): name for name in names}
        if not asked:
            return {}
        got = self._files.cat(list(asked), on_error="return")
        start = {self._files._strip_protocol(place): name for place, name in asked.items()}
        return {start[place]: one if isinstance(one, bytes) else b"" for place, one in got.items()}


def place_of(address: str | Path) -> StorePlace:
    """The place that an address names.

    Raises
    ------
    InputError
        fsspec is not installed, or doesn't know the address.
    """
    text = str(address)
    if "://" not in text:
        return _Folder(Path(text))
    try:
        import fsspec
    except ImportError as error:
        raise InputError(
            f"the store {text} needs fsspec, which is not installed", hint=install_extra("store")
        ) from error
    try:
        files, root = fsspec.core.url_to_fs(text)
    except (ImportError, ValueError) as error:
        raise InputError(f"the store {text}: {error}") from error
    return _Address(files, root)
