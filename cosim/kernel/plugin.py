"""A plug-in's C: compiled when a run first needs it, and kept in the user's cache."""

from __future__ import annotations

import hashlib
import logging
import tempfile
from functools import cache
from pathlib import Path

from cosim.errors import InputError, Location
from cosim.files.cache import cache_folder
from cosim.kernel.build import SOURCES, SUFFIX, BuildError, compile_c, number
from cosim.kernel.layout import RENAMED
from cosim.kernel.library import function_in, open_library

_log = logging.getLogger("cosim")
# A name that isn't declared is an error of the compiler's, which names the line, not of the loader's.
_FLAGS = (f"-I{SOURCES}", "-fvisibility=default", "-Werror=implicit-function-declaration")


def load(source: Path, function: str) -> int:
    """The address of a function of a C file, which may include ``kernel.h`` and headers beside it.

    Raises
    ------
    InputError
        It doesn't compile, with the compiler's first error; there is no compiler, or no such function.
    """
    try:
        address = _load(source, function, _content(source))
    except BuildError as error:
        line = None if error.line is None else Location(error.file or str(source), error.line)
        hint = [
            f"{old} is {new} now"
            for old, new in RENAMED.items()
            if f"no member named '{old}'" in error.message
        ]
        raise InputError(
            error.message, location=line or Location(str(source)), hint="; ".join(hint) or None
        ) from error
    except OSError as error:
        text = " ".join(str(error).split()).rpartition(f"{SUFFIX}: ")[2]
        raise InputError(f"can't be compiled and loaded: {text}", location=Location(str(source))) from error
    if not address:
        raise InputError(
            f"has no function {function} that can be called from outside",
            location=Location(str(source)),
            hint=f"void {function}(int64_t n, ...), not static",
        )
    return address


def library(source: Path, function: str) -> Path:
    """The shared object of a C file, for a program that loads it itself; kept in the user's cache.

    Raises
    ------
    InputError
        As :func:`load`, and where nothing can be kept.
    """
    load(source, function)
    made = _made_in(cache_folder("kernels"), source, _content(source))
    if not made.is_file():
        raise InputError(
            f"is compiled, but can't be kept in {made.parent}, where another program would load it from",
            location=Location(str(source)),
        )
    return made


def _content(source: Path) -> str:
    """A name for what is compiled: the file, headers beside it, and the kernel's."""
    content = hashlib.sha256(f"{number()} {_FLAGS}".encode())
    for path in (source, *sorted(source.parent.glob("*.h"))):
        content.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return content.hexdigest()[:16]


@cache
def _load(source: Path, function: str, content: str) -> int:
    try:
        folder = cache_folder("kernels")
        folder.mkdir(parents=True, exist_ok=True)
        return _compiled_in(folder, source, function, content)
    except (InputError, OSError) as error:
        # A home that is read-only, or nobody's. What is loaded needs no file any more.
        _log.warning("%s is compiled in each run, for nothing can be kept: %s", source.name, error)
        with tempfile.TemporaryDirectory() as folder_of_this_run:
            return _compiled_in(Path(folder_of_this_run), source, function, content)


def _made_in(folder: Path, source: Path, content: str) -> Path:
    return folder / f"{source.stem}-{content}{SUFFIX}"


def _compiled_in(folder: Path, source: Path, function: str, content: str) -> int:
    made = _made_in(folder, source, content)
    if made.is_file():
        try:
            return function_in(open_library(made), function)
        except OSError:  # cut short by a full disk, say: made again
            made.unlink()
    compile_c(source, made, _FLAGS)
    return function_in(open_library(made), function)
