"""A script that fails: the user's own frames, and what to do about it."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from typing import Any

_HINTS = (
    ("DataDependentOutputException", "a tensor's value decides what happens; profiled ones have none"),
    ("DynamicOutputShapeException", "a result's length depends on values; profiled tensors have none"),
    ("No module named", "the script runs in cosim's Python environment: install the package there"),
    ("fake impl", "an operator of another library lacks a fake implementation: torch.library.register_fake"),
    ("CUDA error", "something called CUDA itself; profiled scripts have no GPU"),
    ("Not linked with support for cuda", "something called CUDA itself; profiled scripts have no GPU"),
    ("is_cuda", "something looked for a real GPU; profiled scripts have none"),
)  # fmt: skip


def explain(error: BaseException, order: dict[str, Any], frames: traceback.StackSummary) -> dict[str, Any]:
    """Message, the user's frames (those outside of installed packages and the standard library), a hint."""
    own, last = [], None
    for frame in frames:
        last = f"{frame.filename}:{frame.lineno} in {frame.name}"
        if _is_users(frame.filename):
            own.append(f"{frame.filename}:{frame.lineno} in {frame.name}: {frame.line}")
    text = "".join(traceback.format_exception_only(type(error), error)).strip()
    whole = "".join(traceback.format_exception(error))
    hint = next((hint for key, hint in _HINTS if key in whole), "")
    return {"error": text[:2000], "traceback": own, "raised_at": last, "hint": hint,
            "whole": whole if order.get("whole_traceback") else ""}  # fmt: skip


def _is_users(filename: str) -> bool:
    place = Path(filename)
    if filename.startswith("<") or "site-packages" in place.parts:
        return False
    ours = Path(__file__).resolve().parents[1]
    if ours in place.resolve().parents:
        return False
    return not str(place).startswith(str(Path(sys.base_prefix) / "lib"))
