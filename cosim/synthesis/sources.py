"""The traces that are given, as a workload of what Chakra can say: one CPU, one GPU, one network stream.

Chakra's readers run one operation at a time on each of these. PyTorch's traces have more threads and streams,
so here each operation gets the time that it holds its CPU or GPU up:

- a CPU operation beside which another thread computes waits for it: that time is the other thread's;
- a kernel's launch, a delay between CPU and GPU, counts on the GPU where a kernel waits for it, else not;
- copies and other accesses of known time are computations on the GPU.
"""

from __future__ import annotations

import lzma
import tarfile
import zlib
from bisect import bisect_left
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from cosim.context import Context
from cosim.errors import InputError, Location
from cosim.formats.chakra.folder import rank_files
from cosim.formats.chakra.groups import GROUPS_FILE
from cosim.formats.pytorch.files import open_traces
from cosim.registry import Named
from cosim.workload.check import check
from cosim.workload.contract import WorkloadSpec
from cosim.workload.operation import (
    COMM_STREAM,
    COMPUTE_STREAM,
    CPU_STREAM,
    NO_STREAM,
    Operation,
    OpKind,
    Program,
)
from cosim.workload.program import Workload

_LAUNCH = f"{CPU_STREAM} launch"
_BEGIN = 1 << 20


def read_sources(
    paths: Sequence[Path], *, world_size: int | None, gpu: str | None, dependencies: str
) -> Workload:
    """Read one job's traces: Chakra's .et or PyTorch's execution and Kineto traces.

    Parameters
    ----------
    paths
        One or more files ``PREFIX.<rank>.et``, a folder of them, or PyTorch's files.
    world_size
        Ranks, where one trace stands for all.
    gpu
        Times the operators of execution traces without Kineto's; a name of ``cosim list gpu``.
    dependencies
        ``all``, or ``data`` for Chakra traces that PyTorch's were converted to.

    Raises
    ------
    InputError
        Traces that are missing, damaged or don't fit each other; says file, place and what would be right.
    """
    for path in paths:
        if not path.exists():
            raise InputError("no such file", location=Location(str(path)))
    is_chakra = [_is_chakra(path) for path in paths]
    if any(is_chakra) and not all(is_chakra):
        raise InputError(
            "not a Chakra trace, but the first ones are"
            if is_chakra[0]
            else "a Chakra trace among PyTorch's",
            location=Location(str(paths[is_chakra.index(not is_chakra[0])])),
            hint="learn from one job's traces, of one kind",
        )
    if is_chakra[0]:
        prefix = _one_prefix(paths)
        settings: dict[str, Any] = {"kind": "chakra", "path": str(prefix), "dependencies": dependencies}
        groups = prefix.parent / GROUPS_FILE
        if not prefix.is_dir() and groups.is_file():
            settings["comm_groups"] = str(groups)
    else:
        settings = {"kind": "pytorch", **_pytorch(paths, gpu)}
    if world_size is not None:
        settings["world_size"] = world_size
    try:
        spec: WorkloadSpec = Named("cosim.workloads").resolve(settings)
    except ValidationError as error:
        raise InputError(error.errors()[0]["msg"].removeprefix("Value error, ")) from None
    workload = spec.build(Context(base=Path()))
    check(workload)
    programs = tuple(Program(one.name, _said(one.operations)) for one in workload.programs)
    return replace(workload, programs=programs)


def _is_chakra(path: Path) -> bool:
    return path.suffix == ".et" or (path.is_dir() and any(path.glob("*.et")))


def _one_prefix(paths: Sequence[Path]) -> Path:
    """What ``kind: chakra`` is given for the files that a shell made of ``traces/*.et``."""
    if len(paths) == 1:
        return paths[0]
    prefix = Path(str(paths[0]).rsplit(".", 2)[0])
    expected = {file.resolve() for file in rank_files(prefix)}
    for path in paths:
        if path.resolve() not in expected:
            raise InputError(
                f"no rank of {prefix}", location=Location(str(path)), hint="learn from one job's traces"
            )
    return prefix


def _pytorch(paths: Sequence[Path], gpu: str | None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for path in paths:
        begin = _begin(path)
        kind = "kineto" if '"traceEvents"' in begin else "et"
        if kind == "et" and '"nodes"' not in begin:
            raise InputError(
                "neither Chakra's .et nor an execution or Kineto trace of PyTorch's",
                location=Location(str(path)),
                hint="give a job's traces; `cosim translate --to chakra` makes them of a scenario",
            )
        if kind in found:
            raise InputError(
                f"a second file of {kind} traces, beside {found[kind]}",
                location=Location(str(path)),
                hint="put the ranks' files into a folder or a .tar.gz, and give that",
            )
        found[kind] = str(path)
    if "kineto" not in found:
        if gpu is None:
            raise InputError(
                "an execution trace has no times",
                location=Location(found["et"]),
                hint="give the Kineto traces too, or --gpu NAME to compute the times (cosim list gpu)",
            )
        found["gpu"] = gpu
    return found


def _begin(path: Path) -> str:
    """The first characters of a trace, unpacked; of several those of the first."""
    try:
        with closing(open_traces(path)) as files:
            _, text = next(files)  # held, so that it is closed with its file
            return text.read(_BEGIN)
    except (OSError, EOFError, ValueError, tarfile.TarError, zlib.error, lzma.LZMAError) as error:
        raise InputError(
            f"can't be unpacked: {error}",
            location=Location(str(path)),
            hint="copy it again: it is cut or damaged",
        ) from error


def _said(operations: tuple[Operation, ...]) -> tuple[Operation, ...]:
    """Operations on the three streams."""
    if not any(one.stream not in (CPU_STREAM, COMPUTE_STREAM, COMM_STREAM, NO_STREAM) for one in operations):
        return tuple(map(_moved, operations))
    start, end = _as_soon_as_possible(operations)
    threads = {one.stream for one in operations if _is_thread(one)}
    main = CPU_STREAM if CPU_STREAM in threads else min(threads, default=CPU_STREAM)
    others = [at for at, one in enumerate(operations) if _is_thread(one) and one.stream != main]
    busy = _Busy([(start[at], end[at]) for at in others])
    waited_for = [False] * len(operations)
    for at, one in enumerate(operations):
        for before in one.deps:
            waited_for[before] |= end[before] == start[at]
    said = []
    for at, one in enumerate(operations):
        moved = _moved(one)
        if one.stream == main and one.duration_ps:
            beside = busy.within(start[at], end[at])
            if 2 * beside > one.duration_ps:
                moved = replace(moved, duration_ps=one.duration_ps - beside)
        elif one.stream.startswith(_LAUNCH):
            moved = replace(
                moved, stream=COMPUTE_STREAM, duration_ps=one.duration_ps if waited_for[at] else 0
            )
        said.append(moved)
    return tuple(said)


def _is_thread(one: Operation) -> bool:
    return one.stream.startswith(CPU_STREAM) and not one.stream.startswith(_LAUNCH)


def _moved(one: Operation) -> Operation:
    if one.kind is OpKind.RECV:
        return replace(one, stream=NO_STREAM)
    if one.kind is OpKind.COMPUTE or (one.kind is OpKind.MEMORY and not one.access):
        stream = CPU_STREAM if one.stream.startswith(CPU_STREAM) else COMPUTE_STREAM
        return replace(one, kind=OpKind.COMPUTE, stream=stream)
    return replace(one, stream=COMM_STREAM)


def _as_soon_as_possible(operations: Sequence[Operation]) -> tuple[list[int], list[int]]:
    """When each could begin and end if communication took no time."""
    start, end = [0] * len(operations), [0] * len(operations)
    for at, one in enumerate(operations):  # PyTorch's readers number operations in such an order
        start[at] = max((end[before] for before in one.deps), default=0)
        end[at] = start[at] + one.duration_ps
    return start, end


class _Busy:
    """Spans of which some time within others is asked; they don't overlap much."""

    def __init__(self, spans: list[tuple[int, int]]) -> None:
        union: list[list[int]] = []
        for begin, end in sorted(spans):
            if union and begin <= union[-1][1]:
                union[-1][1] = max(union[-1][1], end)
            else:
                union.append([begin, end])
        self._edges = [edge for span in union for edge in span]
        self._sums = [0, *accumulate(end - begin for begin, end in union)]

    def within(self, begin: int, end: int) -> int:
        return self._until(end) - self._until(begin)

    def _until(self, time: int) -> int:
        at = bisect_left(self._edges, time)
        return self._sums[at // 2] + (time - self._edges[at - 1] if at % 2 else 0)
