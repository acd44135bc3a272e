"""The profile file, format 1: YAML that people can read, written so that equal profiles are equal bytes.

::

    cosim_profile: 1
    name: train.py                    the script
    gpu: h100-sxm                     timed on this, unless the scenario says otherwise
    mesh: {dp: 128, tp: 8}            the last axis varies fastest over ranks
    made: {torch: 2.13.0, ...}        how; no dates, no paths
    assumed: [...]                    what a GPU run might do otherwise
    unknown: {...}                    operators without a FLOP formula: timed by their bytes
    kernels:                          [operator, kind, type, FLOPs, bytes, batch, rows, inner, columns];
                                      FLOPs are PyTorch's, which takes a causal mask for none
    programs:
    - at: {pp: 0}                     the ranks of this class: coordinates; {}: every rank
      operations:                     [phase, stream, after, what]; what is one of
                                      [[kernel, times], ...]
                                      [all_reduce, [dp], bytes]  (broadcast: and root's place)
                                      [all_reduce, [pp, [0, 3]], bytes]: places 0 and 3 of an axis
                                      [shift, [cp], bytes]: each place of an axis to the next, round
                                      [send, [pp, 1], bytes, tag] or [recv, [pp, -1], bytes, tag]

A fifth element ``graph``: launched by a CUDA graph, not by the host. ``after`` are numbers of operations of
the program. Bytes as ``cosim.pattern.template.Collective`` counts
them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cosim.errors import Location, WorkloadError
from cosim.files import located_yaml
from cosim.files.whole import whole_file
from cosim.profiler.lower import KernelRow, ProfiledOperation

FORMAT = 1
_HEAD = "# A training iteration as cosim profiled it; `workload: {kind: profile, path: ...}` runs it.\n"


@dataclass(frozen=True)
class ClassProgram:
    """Steps of the ranks at some coordinates."""

    at: dict[str, int]
    steps: tuple[ProfiledOperation, ...]


@dataclass(frozen=True)
class Profile:
    """What the file holds."""

    name: str
    gpu: str
    mesh: dict[str, int]
    kernels: tuple[KernelRow, ...]
    programs: tuple[ClassProgram, ...]
    made: dict[str, Any] = field(default_factory=dict)
    assumed: tuple[str, ...] = ()
    unknown: dict[str, int] = field(default_factory=dict)

    @property
    def world_size(self) -> int:
        """Ranks in all."""
        size = 1
        for length in self.mesh.values():
            size *= length
        return size


def write(profile: Profile, path: Path) -> None:
    """Write a profile; equal profiles give equal bytes.

    Raises
    ------
    WorkloadError
        A place that can't be written.
    """
    lines = [_HEAD]
    for key, value in (
        ("cosim_profile", FORMAT),
        ("name", profile.name),
        ("gpu", profile.gpu),
        ("mesh", profile.mesh),
        ("made", profile.made),
        ("assumed", list(profile.assumed)),
        ("unknown", profile.unknown),
    ):
        lines.append(f"{key}: {_flow(value)}\n")
    lines.append("kernels:\n")
    lines.extend(f"- {_flow(list(kernel))}\n" for kernel in profile.kernels)
    lines.append("programs:\n")
    for program in profile.programs:
        lines.append(f"- at: {_flow(program.at)}\n  operations:\n")
        lines.extend(f"  - {_flow(_row(step))}\n" for step in program.steps)
    try:
        with whole_file(path) as part:
            part.write_text("".join(lines), encoding="utf-8")
    except OSError as error:
        raise WorkloadError(f"can't be written: {error.strerror}", location=Location(str(path))) from None


def _flow(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _row(step: ProfiledOperation) -> list[Any]:
    what: list[Any]
    if step.kind == "compute":
        what = [list(pair) for pair in step.kernels]
    elif step.peer is not None:
        what = [step.kind, list(step.peer), step.size_bytes, step.tag]
    else:
        what = [
            step.kind,
            _plain(step.group),
            step.size_bytes,
            *([step.root] if step.kind == "broadcast" else []),
        ]
    return [step.phase, step.stream, list(step.deps), what, *(["graph"] if step.graphed else [])]


def _plain(group: Any) -> list[Any]:
    return [list(each) if isinstance(each, tuple) else each for each in group]


def read(path: Path) -> Profile:
    """Read a profile.

    Raises
    ------
    WorkloadError
        A file that is missing, not a profile, of another format, or broken; says where.
    """
    place = Location(str(path))
    data = located_yaml.read(path, WorkloadError, hint="`cosim profile SCRIPT -o FILE` makes one").value
    if not isinstance(data, dict) or "cosim_profile" not in data:
        raise WorkloadError("is not a profile: it has no `cosim_profile`", location=place)
    if data["cosim_profile"] != FORMAT:
        raise WorkloadError(
            f"is of format {data['cosim_profile']}; cosim reads format {FORMAT}", location=place,
            hint="profile the script again",
        )  # fmt: skip
    try:
        return _profile(data)
    except (KeyError, TypeError, ValueError, IndexError, OverflowError, AttributeError) as error:
        raise WorkloadError(f"is broken: {type(error).__name__}: {error}", location=place) from None


def _profile(data: dict[str, Any]) -> Profile:
    kernels = tuple(
        (str(k[0]), str(k[1]), str(k[2]), *(int(v) for v in k[3:9])) for k in data["kernels"] or ()
    )
    programs = tuple(
        ClassProgram(dict(program["at"]), tuple(_step(row) for row in program["operations"] or ()))
        for program in data["programs"]
    )
    for program in programs:
        for number, step in enumerate(program.steps):
            if any(not 0 <= d < len(program.steps) or d == number for d in step.deps):
                raise ValueError(f"operation {number} of {program.at} waits for {list(step.deps)}")
            if any(not 0 <= k < len(kernels) for k, _ in step.kernels):
                raise ValueError(f"operation {number} of {program.at} has a kernel that isn't there")
    return Profile(
        name=str(data["name"]),
        gpu=str(data["gpu"]),
        mesh={str(k): int(v) for k, v in data["mesh"].items()},
        kernels=kernels,  # type: ignore[arg-type]
        programs=programs,
        made=dict(data.get("made") or {}),
        assumed=tuple(data.get("assumed") or ()),
        unknown=dict(data.get("unknown") or {}),
    )


def _step(row: list[Any]) -> ProfiledOperation:
    phase, stream, deps, what, *rest = row
    if rest not in ([], ["graph"]):
        raise ValueError(f"{rest} after an operation: only `graph` may stand there")
    return replace(_plain_step(phase, stream, tuple(int(d) for d in deps), what), graphed=bool(rest))


def _plain_step(phase: str, stream: str, deps: tuple[int, ...], what: list[Any]) -> ProfiledOperation:
    if not what or isinstance(what[0], list):
        return ProfiledOperation(phase, stream, deps, tuple((int(k), int(times)) for k, times in what))
    kind, where, size = what[0], what[1], int(what[2])
    if kind in ("send", "recv"):
        peer = (str(where[0]), int(where[1]))
        return ProfiledOperation(phase, stream, deps, kind=kind, size_bytes=size, peer=peer, tag=int(what[3]))
    group: Any = tuple(tuple(each) if isinstance(each, list) else each for each in where)
    root = int(what[3]) if len(what) > 3 else 0
    return ProfiledOperation(phase, stream, deps, kind=kind, group=group, size_bytes=size, root=root)
