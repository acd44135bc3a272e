"""Which format a file or folder has, told by what it holds."""

from __future__ import annotations

from pathlib import Path

from cosim.captures.contract import CaptureFormat
from cosim.captures.traffic import TrafficCapture
from cosim.errors import InputError, Location
from cosim.registry import find, names

_GROUP = "cosim.capture_formats"
_START_BYTES = 4096


def read_capture(path: Path, chosen: CaptureFormat | None = None) -> TrafficCapture:
    """Read a capture, in a format that is named, or else in the one that knows it.

    Raises
    ------
    InputError
        It isn't there, no format knows it or several do, or it is damaged.
    """
    try:
        return (chosen or _knows(path)).read(path)
    except OSError as error:
        raise InputError(error.strerror or str(error), location=Location(str(path))) from error


def _knows(path: Path) -> CaptureFormat:
    place = Location(str(path))
    start = b""
    if not path.is_dir():
        with path.open("rb") as file:
            start = file.read(_START_BYTES)
        if not start:
            raise InputError("the file is empty", location=place, hint="give a longer record")
    reasons: dict[str, str] = {}
    fitting: dict[str, CaptureFormat] = {}
    for name in names(_GROUP):
        one: CaptureFormat = find(_GROUP, name)()
        reason = one.refuses(start, path)
        if reason is None:
            fitting[name] = one
        else:
            reasons[name] = reason
    if len(fitting) == 1:
        return next(iter(fitting.values()))
    if fitting:
        raise InputError(f"could be {' or '.join(fitting)}", location=place, hint="--format NAME says which")
    listed = "".join(f"\n  {name}: {reason}" for name, reason in reasons.items())
    hint = "--format NAME, or a plug-in: --format my_format.py:MyFormat"
    if b'"schemaVersion"' in start or b'"traceEvents"' in start:
        hint = "a trace of PyTorch's is a job: run it with workload: {kind: pytorch, kineto: FILE}, and --out"
    raise InputError(
        f"no run of cosim's, and no format of captures knows it:{listed}", location=place, hint=hint
    )
