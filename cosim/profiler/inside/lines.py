"""Which line of the user's own code is being carried out: what is said of a script names it."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import Any

_OURS = Path(__file__).resolve().parents[1]


@cache
def is_users(filename: str) -> bool:
    """Neither the standard library's nor an installed package's, nor the profiler's."""
    place = Path(filename)
    if filename.startswith("<") or "site-packages" in place.parts:
        return False
    if _OURS in place.resolve().parents:
        return False
    return not str(place).startswith(str(Path(sys.base_prefix) / "lib"))


def current(frame: Any = None) -> str:
    """``train.py:12``; where a library does it for the user, ``train.py:80, in trainer.py:2503``."""
    frame = sys._getframe(1) if frame is None else frame
    inner = ""
    while frame is not None:
        name = frame.f_code.co_filename
        if is_users(name):
            own = f"{Path(name).name}:{frame.f_lineno}"
            return f"{own}, in {inner}" if inner else own
        if not inner and "torch" not in Path(name).parts and not name.startswith("<") and is_library(name):
            inner = f"{Path(name).name}:{frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]
    return inner or "the script"


@cache
def is_library(filename: str) -> bool:
    """An installed package's, and not the profiler's."""
    return "site-packages" in Path(filename).parts and _OURS not in Path(filename).resolve().parents
