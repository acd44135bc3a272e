"""What in a process's code would make two runs differ, as far as the code shows it.

Read are the process's own function, functions of its own module that it calls, and what these call by name:
the wall clock, and generators of random numbers without a seed. What is called through an object of the
process's own is not seen.
"""

from __future__ import annotations

import dis
import linecache
import random
import sys
from collections.abc import Generator, Iterator, Mapping
from types import CodeType, FrameType, FunctionType
from typing import Any

_CLOCKS = {
    "time": tuple(f"{name}{unit}" for name in ("time", "monotonic", "perf_counter") for unit in ("", "_ns")),
    "datetime": ("datetime.now", "datetime.utcnow", "datetime.today", "date.today"),
}
_CHANCE = {
    "os": ("urandom",),
    "uuid": ("uuid1", "uuid4"),
    "secrets": ("token_bytes", "token_hex", "randbelow", "choice"),
}
_BETWEEN = ("PUSH_NULL", "PRECALL", "KW_NAMES", "CACHE", "LOAD_CONST")
"""Instructions that may stand between a function's name and its call."""
_SEEDED = ("random.Random", "numpy.random.default_rng", "numpy.random.RandomState")
"""Classes of generators, which draw what nobody chose where they are given no seed."""


def unsteady(process: Generator[Any, Any, Any]) -> Iterator[str]:
    """``file.py:12 reads the wall clock (time.time)``, for each place that is seen."""
    for frame in frames_of(process):
        yield from _of_code(frame.f_code, {**frame.f_globals, **frame.f_locals}, set())


def frames_of(process: Any) -> list[FrameType]:
    """Frames of a process that begins, and of generators that it was given, which it may go on with."""
    frame = getattr(process, "gi_frame", None)
    if frame is None:
        return []
    given = [getattr(one, "gi_frame", None) for one in frame.f_locals.values()]
    return [frame, *(one for one in given if one is not None)]


def _of_code(code: CodeType, names: Mapping[str, Any], seen: set[CodeType]) -> Iterator[str]:
    if code in seen:
        return
    seen.add(code)
    local: dict[str, Any] = {}
    line, found, module = code.co_firstlineno, None, None
    for at in dis.get_instructions(code):
        if at.starts_line:
            line = _line_of(at, line)
        kind, name = at.opname, at.argval
        if kind == "IMPORT_NAME":
            module = found = sys.modules.get(name)
        elif kind == "IMPORT_FROM":
            found = getattr(module, name, None)
        elif kind.startswith("STORE_FAST") and isinstance(name, str):
            local[name], found = found, None
        elif kind in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_FAST", "LOAD_FAST_CHECK"):
            found = local.get(name, names.get(name)) if kind.startswith("LOAD_FAST") else names.get(name)
        elif kind in ("LOAD_ATTR", "LOAD_METHOD") and found is not None:
            found = getattr(found, name, None)
        elif kind.startswith("CALL"):
            if found is not None:
                yield from _of_call(found, at.arg == 0, f"{code.co_filename}:{line}", names, seen)
            found = None
        elif kind not in _BETWEEN:
            found = None
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from _of_code(const, names, seen)


def _line_of(at: dis.Instruction, before: int) -> int:
    """The line of an instruction: ``starts_line`` is a number, or since Python 3.13 whether one starts."""
    number = getattr(at, "line_number", at.starts_line)
    return int(number) if number is not None and not isinstance(number, bool) else before


def _of_call(
    called: Any, is_bare: bool, where: str, names: Mapping[str, Any], seen: set[CodeType]
) -> Iterator[str]:
    if isinstance(called, FunctionType) and called.__module__ == names.get("__name__"):
        yield from _of_code(called.__code__, called.__globals__, seen)
        return
    name = name_of(called)
    module, _, rest = name.partition(".")
    if rest in _CLOCKS.get(module, ()):
        yield f"{where} reads the wall clock ({name})"
    elif rest in _CHANCE.get(module, ()) or (is_bare and name in _SEEDED):
        yield f"{where} draws without a seed ({name})"
    elif _is_shared(called) and not rest.endswith("seed") and not _seeds(where):
        yield f"{where} draws from a generator that is given no seed here ({name})"


def name_of(called: Any) -> str:
    """``time.perf_counter``; of what is bound, with the name of its class or module."""
    owner = getattr(called, "__self__", None)
    module = str(getattr(called, "__module__", None) or getattr(owner, "__name__", ""))
    if owner is not None and not isinstance(owner, type) and not hasattr(owner, "__name__"):
        module = type(owner).__module__.partition(".")[0]
        module = "numpy.random" if module == "numpy" else module
    if isinstance(owner, type):
        return f"{owner.__module__}.{owner.__name__}.{called.__name__}"
    module = {"posix": "os", "nt": "os", "numpy.random._generator": "numpy.random"}.get(module, module)
    return f"{module}.{getattr(called, '__name__', '')}"


def _is_shared(called: Any) -> bool:
    """Whether it draws from the one generator that Python, or NumPy, has for all."""
    owner = getattr(called, "__self__", None)
    numpy = sys.modules.get("numpy.random")
    shared = [random.random.__self__, *([numpy.random.__self__] if numpy is not None else [])]  # type: ignore[attr-defined]
    return any(owner is one for one in shared)


def _seeds(where: str) -> bool:
    """Whether the file gives the shared generator a seed somewhere."""
    return any("random.seed(" in line for line in linecache.getlines(where.rpartition(":")[0]))
