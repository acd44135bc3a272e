"""A script that fails: the user's own frames, and what to do about it."""

from __future__ import annotations

import importlib.util
import traceback
from typing import Any

from cosim.profiler.inside.lines import is_users

_NETWORK = (
    "it needs the network: fetch what it loads before, and give it the local path; where it takes none (names"
    " on the Hub), into the library's cache (HF_HOME), and set HF_HUB_OFFLINE=1"
)
_HINTS = (
    ("DataDependentOutputException", "a tensor's value decides what happens; profiled ones have none"),
    ("DynamicOutputShapeException", "a result's length depends on values; profiled tensors have none"),
    ("invalid device ordinal", "a node has the GPUs that --per-node says; LOCAL_RANK is below that"),
    ("OfflineModeIsEnabled", _NETWORK),
    ("LocalEntryNotFoundError", _NETWORK),
    ("couldn't connect to", _NETWORK),
    ("Max retries exceeded", _NETWORK),
    ("ConnectError", _NETWORK),
    ("ConnectionError", _NETWORK),
    ("URLError", _NETWORK),
    ("gaierror", _NETWORK),
    ("FileNotFoundError", "the script runs in the folder where cosim is run: paths are from there"),
    ("No module named", "the script runs in cosim's Python environment: install the package there"),
    ("fake impl", "an operator of another library lacks a fake implementation: torch.library.register_fake"),
    ("the compiled part that has it", "compiling needs it; eagerly it runs (vLLM: enforce_eager=True)"),
    ("CUDA error", "something called CUDA itself; profiled scripts have no GPU"),
    ("Not linked with support for cuda", "something called CUDA itself; profiled scripts have no GPU"),
    ("is_cuda", "something looked for a real GPU; profiled scripts have none"),
)  # fmt: skip


def _without_extension(error: BaseException) -> str:
    """What to do about a package that is there without what is compiled of it, as vLLM without CUDA is."""
    if not isinstance(error, ModuleNotFoundError):
        return ""
    package, _, part = (error.name or "").partition(".")
    if not part.startswith("_") or importlib.util.find_spec(package) is None:
        return ""
    return (
        f"{package} is installed without {part}, its compiled part, and so without its operators: install it"
        " whole, or profile the same model by transformers, whose generate becomes a request"
    )


def stopped(stop: SystemExit) -> dict[str, Any]:
    """The script ended itself: where, and with which code; what it said stands in its log."""
    frames = [f for f in traceback.extract_tb(stop.__traceback__) if is_users(f.filename)]
    own = [f"{f.filename}:{f.lineno} in {f.name}: {f.line}" for f in frames]
    code = stop.code if isinstance(stop.code, int) else 1
    text = f": {stop.code}" if isinstance(stop.code, str) else ""
    return {"error": f"the script stopped itself: exit code {code}{text}", "traceback": own, "stopped": True}


def _text(error: BaseException) -> str:
    return "".join(traceback.format_exception_only(type(error), error)).strip()


def _first_cause(error: BaseException) -> BaseException:
    """What an error was raised from, all the way down: libraries hide a reason in general words."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def explain(error: BaseException, order: dict[str, Any], frames: traceback.StackSummary) -> dict[str, Any]:
    """Message, the user's frames (those outside of installed packages and the standard library), a hint."""
    own, last = [], None
    for frame in frames:
        last = f"{frame.filename}:{frame.lineno} in {frame.name}"
        if is_users(frame.filename):
            own.append(f"{frame.filename}:{frame.lineno} in {frame.name}: {frame.line}")
    text = _text(error)
    if (first := _first_cause(error)) is not error:
        text = f"{text[:1000]}, because of {_text(first)}"
    whole = "".join(traceback.format_exception(error))
    hint = _without_extension(error) or next((hint for key, hint in _HINTS if key in whole), "")
    return {"error": text[:2000], "traceback": own, "raised_at": last, "hint": hint,
            "whole": whole if order.get("whole_traceback") else ""}  # fmt: skip
