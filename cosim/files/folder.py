"""A folder of results: who writes to it, which of its files are cosim's, and one step from old to new ones.

A folder may hold its owner's files beside results. :data:`MANIFEST` says which files are cosim's. No other
is ever replaced unless somebody says so. New results are written to a folder of their own, beside those of an
earlier run. When they are whole, :data:`SWAP` is written, which says what comes from there. From then on the
folder holds the new results: whoever looks next ends what a process that died had begun (:func:`settle`).
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from cosim.errors import InputError, Location
from cosim.files.lock import held_folder

MANIFEST = ".cosim-files.json"
"""Names of the files in a folder that are cosim's."""
SWAP = ".cosim-swap.json"
"""Results that are whole, but not all in their places: where they are, and which files of before go."""
PROGRESS_FILE = ".progress.json"
"""In a folder that somebody writes to: how far that is, ``{"done": 3, "total": 10, "text": "..."}``."""
_WRITING = ".writing-"


def make_folder(directory: str | Path) -> Path:
    """A folder that can be written to.

    Raises
    ------
    InputError
        It can't be.
    """
    if not str(directory):
        raise InputError("the folder to write to has no name", hint="name one: --out runs/first")
    target = Path(directory)
    try:
        if target.exists() and not target.is_dir():
            raise InputError("is a file; the run is written to a folder", location=Location(str(target)))
        if target.is_symlink() and not target.exists():
            raise InputError("is a link that leads nowhere", location=Location(str(target)))
        target.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=target):
            pass
    except OSError as error:
        raise cannot_write(target, error) from error

    return target


def cannot_write(target: Path, error: OSError) -> InputError:
    """What a folder says that can't be written."""
    return InputError(f"can't write the run: {error.strerror or error}", location=Location(str(target)))


@contextmanager
def claimed(
    directory: str | Path,
    names: Iterable[str] = (),
    *,
    inputs: Iterable[str | Path] = (),
    overwrite: bool = False,
) -> Iterator[Path]:
    """Hold a folder, made where there is none, so that nobody else writes to it meanwhile.

    Parameters
    ----------
    directory
        The folder.
    names
        Of the files that will be written there. Those that are there must be cosim's.
    inputs
        Files that are read, and so never replaced.
    overwrite
        Whether others' files of these names may be replaced.

    Raises
    ------
    InputError
        The folder can't be written to, another run writes to it, or a file there would be lost.
    """
    target = make_folder(directory)
    with held_folder(target) as held:
        if not held:
            raise InputError("another run writes to this folder", location=Location(str(target)))
        try:
            _end_swap(target)
        except OSError as error:
            raise cannot_write(target, error) from error
        names = list(names)
        _keep_inputs(target, names, inputs)
        if not overwrite:
            keep_others(target, names)
        yield target


def _keep_inputs(target: Path, names: list[str], inputs: Iterable[str | Path]) -> None:
    """Refuse to write where a file that is read would be replaced."""
    read = {Path(one).resolve() for one in inputs}
    for name in names:
        if read and (target / name).resolve() in read:
            raise InputError(
                "is read by this run, whose results would replace it",
                location=Location(str(target / name)),
                hint="write to another folder: --out runs/new",
            )


def keep_others(target: Path, names: Iterable[str]) -> None:
    """See that files of these names in a folder that is held are cosim's.

    Raises
    ------
    InputError
        Some are not: they would be replaced.
    """
    ours = files_of(target)
    others = [name for name in names if name not in ours and os.path.lexists(target / name)]
    if others:
        raise InputError(
            f"holds {' and '.join(others[:3])}, which cosim did not write, and the results would replace",
            location=Location(str(target)),
            hint="write to another folder, or say --overwrite",
        )


def files_of(target: Path) -> set[str]:
    """The names of the files in a folder that are cosim's; none where nothing says so."""
    return set(_read(target / MANIFEST).get("files", ()))


def files_below(folder: Path) -> list[str]:
    """The names of all files in a folder and below it, from there."""
    return sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*") if not file.is_dir())


def own(target: Path, names: Iterable[str]) -> None:
    """Say of further files in a folder that is held that they are cosim's."""
    _write(target / MANIFEST, {"files": sorted(files_of(target) | set(names))})


def disown(target: Path, names: Iterable[str]) -> None:
    """Say of files that are gone that others of these names would not be cosim's."""
    _write(target / MANIFEST, {"files": sorted(files_of(target) - set(names))})


def _read(file: Path) -> dict[str, Any]:
    """What a file of ours says; nothing where it is not there, or was edited by hand."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        names = [*found.get("files", []), *found.get("gone", []), found.get("part", "part")]
        return found if all(map(_is_inside, names)) else {}
    except (OSError, ValueError, AttributeError, TypeError, RecursionError):
        return {}


def _is_inside(name: Any) -> bool:
    """Whether a name is of a file in a folder, or below it."""
    return (
        isinstance(name, str) and bool(name) and not Path(name).is_absolute() and ".." not in Path(name).parts
    )


def _write(file: Path, value: dict[str, Any]) -> None:
    part = _part_of(file)
    try:
        part.write_text(json.dumps(value) + "\n", encoding="utf-8")
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)  # a disk that is full leaves a part of it


def _part_of(file: Path) -> Path:
    return file.with_name(f"{file.name}.new")


@contextmanager
def written_whole(target: Path, names: Iterable[str]) -> Iterator[Path]:
    """A new folder for files that come to ``target``, which is held, in one step when all are written.

    ``names``: which files an earlier run may have left. Those of them that are not written again go.

    Raises
    ------
    InputError
        They can't be written; everything is as it was before then.
    """
    owned = list(names)
    part = target / f"{_WRITING}{secrets.token_hex(4)}"
    try:
        try:
            _write(target / SWAP, {"part": part.name})  # for who comes after one that dies
            part.mkdir()
            yield part
            new = files_below(part)
            _need_no_folders_place(target, new)
            gone = sorted(set(owned) & files_of(target) - set(new))
            _write(target / SWAP, {"part": part.name, "files": new, "gone": gone})
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            (target / SWAP).unlink(missing_ok=True)
            raise
        _end_swap(target)
    except OSError as error:
        raise cannot_write(target, error) from error
    except InputError as error:
        if error.location is None or not error.location.file.startswith(str(part)):
            raise
        raise InputError(error.message, location=Location(str(target)), hint=error.hint) from error


def _need_no_folders_place(target: Path, names: Iterable[str]) -> None:
    """Refuse new files that can't come to their places: a swap that has begun has to end."""
    for name in names:
        place = target / name
        above = (one for one in place.parents if one.is_relative_to(target))
        if place.is_dir() or any(one.exists() and not one.is_dir() for one in above):
            raise InputError(
                "is in the way of the results, which have a file there",
                location=Location(str(place)),
                hint="move it, or write to another folder",
            )


def _end_swap(target: Path) -> None:
    """Bring results that are whole to their places, and drop others. It may be stopped anywhere, and called
    again.
    """
    swap = _read(target / SWAP)
    part = target / str(swap.get("part", ""))
    if "files" in swap and "gone" in swap:
        own(target, swap["files"])
        for name in swap["files"]:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileNotFoundError):  # it has been moved before
                (part / name).replace(target / name)
        for name in swap["gone"]:
            (target / name).unlink(missing_ok=True)
        disown(target, swap["gone"])
    if part.name.startswith(_WRITING):
        shutil.rmtree(part, ignore_errors=True)
    (target / SWAP).unlink(missing_ok=True)
    for file in (MANIFEST, SWAP, PROGRESS_FILE):
        _part_of(target / file).unlink(missing_ok=True)


def settle(directory: str | Path) -> None:
    """Bring results to their places whose writer died on the last step, before somebody reads them."""
    target = Path(directory)
    if "files" not in _read(target / SWAP):
        return
    with suppress(OSError), held_folder(target) as held:  # read-only: the files are read as they are
        if held:
            _end_swap(target)
