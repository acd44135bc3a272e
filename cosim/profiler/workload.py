"""Kind ``profile``: a profiled training iteration, timed on a GPU of the catalogue, as a workload.

The profile says what is computed; how long that takes is computed here, so that another ``gpu`` needs no
other profile. Kernels run one by one as PyTorch issues them; nothing is fused that the script doesn't fuse.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import Annotated, Any, cast

import numpy as np
from pydantic import Field

from cosim.context import Context
from cosim.errors import Location, WorkloadError
from cosim.files.import_report import ImportReport
from cosim.gpu.contract import GpuSpec
from cosim.gpu.gpus import DType, Gpu, build_gpu
from cosim.gpu.kernels import Kernel, KernelKind, matmul_backward
from cosim.gpu.timer import GpuTimer
from cosim.host.contract import HostSpec
from cosim.profiler import file
from cosim.profiler.file import ClassProgram, Profile
from cosim.profiler.lower import KernelRow, ProfiledOperation
from cosim.profiler.trace import HOST_STREAM
from cosim.registry import Named, find
from cosim.workload.contract import WorkloadSpec
from cosim.workload.program import (
    COMPUTE_STREAM,
    CPU_STREAM,
    DeviceMesh,
    Operation,
    OpKind,
    Peer,
    Program,
    RequestWork,
    Workload,
)


class ProfileWorkload(WorkloadSpec):
    """A training iteration of a PyTorch script, as `cosim profile` wrote it; timed on a named GPU."""

    path: str = Field(description="the file that `cosim profile -o` wrote")
    gpu: Annotated[GpuSpec, Named("cosim.gpus")] | None = Field(
        default=None, description="time it on this GPU; default: the one that was profiled for"
    )
    host: Annotated[HostSpec, Named("cosim.hosts")] | None = Field(
        default=None, description="what issues its operators; omitted: what the GPU's measured jobs ran on"
    )

    def build(self, context: Context) -> Workload:
        """Read and time; ``path`` is relative to ``context.base``.

        Raises
        ------
        WorkloadError
            A file that can't be used, or a GPU without a number type that the profile needs.
        """
        place = str(context.base / self.path)
        profile = file.read(context.base / self.path)
        gpu = named_gpu(profile.gpu, place) if self.gpu is None else self.gpu
        return build(profile, build_gpu(gpu, self.host, context), place)

    def runs_on(self, context: Context) -> GpuSpec:
        """See :class:`~cosim.workload.contract.WorkloadSpec`."""
        if self.gpu is not None:
            return self.gpu
        return named_gpu(file.read(context.base / self.path).gpu, str(context.base / self.path))

    def issued_by(self) -> HostSpec | None:
        """See :class:`~cosim.workload.contract.WorkloadSpec`."""
        return self.host


def named_gpu(name: str, place: str = "gpu") -> Gpu:
    """A GPU of the catalogue.

    Raises
    ------
    WorkloadError
        There is none of that name.
    """
    try:
        found = find("cosim.gpus", name)
    except ValueError as error:
        raise WorkloadError(str(error), location=Location(place)) from None
    if not isinstance(found, Gpu):
        raise WorkloadError(f"{name!r} needs settings: write them in the scenario", location=Location(place))
    return found


def build(profile: Profile, gpu: Gpu, place: str = "profile") -> Workload:
    """The workload of a profile on a GPU.

    Raises
    ------
    WorkloadError
        A number type that the GPU doesn't have.
    """
    mesh = DeviceMesh(profile.mesh)
    gpu = for_profile(profile, gpu, place)
    times = _times(profile, gpu, place)
    program_of = np.zeros(mesh.world_size, np.int32)
    programs: list[Program] = []
    coordinates = [mesh.coordinates(r) for r in range(mesh.world_size)] if len(profile.programs) > 1 else []
    for program in profile.programs:
        ranks = [
            r for r, where in enumerate(coordinates) if all(where[a] == p for a, p in program.at.items())
        ]
        for members, own in _variants(program, ranks or list(range(mesh.world_size)), mesh):
            program_of[members] = len(programs)
            programs.append(_program(program, profile, times, gpu, own))
    kernels = sum(times for p in profile.programs for s in p.steps for _, times in s.kernels)
    flops = _total_flops(profile)
    dtypes = sorted({k[2] for k in profile.kernels if k[1] == "matmul"})
    made = profile.made
    report = ImportReport(
        read=(
            f"{kernels} kernels in {sum(len(p.steps) for p in profile.programs)} operations of"
            f" {len(profile.programs)} {'class' if len(profile.programs) == 1 else 'classes'} of ranks,"
            f" {flops / 1e12:.4g} TFLOP a rank (the busiest), by torch {made.get('torch', '?')}",
        ),
        assumed=(
            *(
                f"computation timed for {gpu.name} ({gpu.source}), {d}: {gpu.trust(cast('DType', d))}"
                for d in dtypes
            ),
            *profile.assumed,
            *(
                f"{times} x {name}: no FLOP formula, timed by its bytes"
                for name, times in profile.unknown.items()
            ),
        ),
    )
    peak = _peak(profile, gpu)
    return Workload(
        profile.name,
        mesh,
        tuple(programs),
        program_of,
        report,
        peak_flops=peak,
        request=_request(profile, place),
    )


def for_profile(profile: Profile, gpu: Gpu, place: str = "profile") -> Gpu:
    """The GPU at the clock that its power leaves the script."""
    return gpu.clocked(lambda one: busy_ps(profile, one, place))


def busy_ps(profile: Profile, gpu: Gpu, place: str = "profile") -> list[int]:
    """Picoseconds that each class of ranks keeps a GPU busy, by its clock as it is."""
    each = _times(profile, gpu, place)
    return [sum(each[k] * n for s in p.steps for k, n in s.kernels) for p in profile.programs]


def _times(profile: Profile, gpu: Gpu, place: str) -> list[int]:
    timed = KernelTimes(gpu, place)
    return [timed.kernel_ps(kernel) for kernel in profile.kernels]


def _request(profile: Profile, place: str) -> RequestWork | None:
    """What an iteration answers: each place along ``dp`` answers sequences of its own."""
    if "sequences" not in profile.made:
        return None
    found = [profile.made.get(name) for name in ("sequences", "tokens", "longest")]
    if not all(isinstance(number, int) and number > 0 for number in found):
        raise WorkloadError(
            f"sequences, tokens and longest are {found}: whole numbers, all three",
            location=Location(place, key="made"),
        )
    sequences, tokens, longest = cast("list[int]", found)
    copies = profile.mesh.get("dp", 1)
    return RequestWork(sequences * copies, tokens * copies, longest)


def _peak(profile: Profile, gpu: Gpu) -> float | None:
    """The GPU's peak in the type that most is multiplied in; None where nothing is."""
    flops: Counter[str] = Counter()
    for program in profile.programs:
        for k, times in (kernel for step in program.steps for kernel in step.kernels):
            flops[profile.kernels[k][2]] += counted_flops(profile.kernels[k]) * times
    dtype = max(flops, key=flops.__getitem__, default="")
    return gpu.peak_flops.get(cast("DType", dtype)) if flops[dtype] else None


def alone_ps(profile: Profile) -> int:
    """How long an iteration takes the busiest rank on the profile's GPU, if communication is free."""
    return max((_ended_ps(p) for p in build(profile, named_gpu(profile.gpu)).programs), default=0)


def _ended_ps(program: Program) -> int:
    """When its last operation ends: each waits for its dependencies and for the one before on its stream."""
    free: dict[str, int] = {}
    ends: list[int] = []
    for operation in program.operations:
        begins = max((ends[dep] for dep in operation.deps), default=0)
        ends.append(max(begins, free.get(operation.stream, 0)) + operation.duration_ps)
        free[operation.stream] = ends[-1]
    return max(ends, default=0)


CAUSAL = "causal "
"""What the kind of an attention begins with whose queries see only the keys before them."""
COMPILED = "inductor."
"""What the names of kernels begin with that a compiler made."""
CONVOLUTION_BACKWARD = "aten.convolution_backward"
BATCH_NORM = "aten.native_batch_norm"


def counted_flops(kernel: KernelRow) -> int:
    """A kernel's FLOPs: of causal attention those of the scores that count, half of what PyTorch says."""
    return kernel[3] // 2 if kernel[1].startswith(CAUSAL) else kernel[3]


def _total_flops(profile: Profile) -> int:
    each = [
        sum(counted_flops(profile.kernels[k]) * times for step in program.steps for k, times in step.kernels)
        for program in profile.programs
    ]
    return max(each, default=0)


class KernelTimes:
    """Times a profile's kernels on a GPU; ``place``: the profile's, for errors."""

    def __init__(self, gpu: Gpu, place: str) -> None:
        self.gpu, self.place = gpu, place
        self._timers: dict[DType, GpuTimer] = {}

    def kernel_ps(self, kernel: KernelRow) -> int:
        """Picoseconds of a kernel.

        Raises
        ------
        WorkloadError
            A product of a type that the GPU doesn't have.
        """
        name, kind, dtype, _, moved, batch, rows, inner, columns = kernel
        flops, timer = counted_flops(kernel), self._timer(name, kind, dtype)
        if (
            kind == "matmul" and not batch
        ):  # a formula for FLOPs, but no shape: by its FLOPs at the attention rate
            kind = "attention"
        stride = 0
        if kind == "matmul" and rows % 8 == 0:  # of weights' gradients it may be the rows
            stride = math.gcd(inner, columns)
        timed = Kernel(
            KernelKind(kind.removeprefix(CAUSAL)), flops, moved, batch, rows, inner, columns, stride=stride,
            causal=kind.startswith(CAUSAL), fused=name.startswith(COMPILED),
            elements=batch if kind == "memory" else 0,
        )  # fmt: skip
        if name == BATCH_NORM and timed.elements:  # one kernel finds mean and variance, one applies them
            third = moved // 3
            return timer.kernels_ps(
                [replace(timed, bytes_moved=third), replace(timed, bytes_moved=moved - third, elements=0)]
            )
        if name != CONVOLUTION_BACKWARD:
            return timer.kernel_ps(timed)
        # Its shape is forward's; what is asked for are the input's gradient and the weight's, or the latter.
        gradients = matmul_backward(timed, 0)[-1 if flops <= 2 * batch * rows * inner * columns else 0 :]
        return timer.kernels_ps([replace(one, bytes_moved=moved // len(gradients)) for one in gradients])

    def _timer(self, name: str, kind: str, dtype: str) -> GpuTimer:
        peaks = self.gpu.peak_flops
        if dtype not in peaks and kind != "memory":
            raise WorkloadError(
                f"{name} computes in {dtype}, which {self.gpu.name} doesn't have; it has"
                f" {', '.join(sorted(peaks))}",
                location=Location(self.place),
                hint="choose another gpu, or profile the script with another number type",
            )
        known = cast("DType", dtype if dtype in peaks else min(peaks))
        if known not in self._timers:
            self._timers[known] = self.gpu.timer(known)
        return self._timers[known]


def _is_part(step: ProfiledOperation) -> bool:
    return len(step.group) == 2 and isinstance(step.group[1], tuple)


def _variants(
    program: ClassProgram, ranks: list[int], mesh: DeviceMesh
) -> list[tuple[list[int], dict[str, int] | None]]:
    """Ranks that can share a program, and where its groups are looked up (nowhere, if that doesn't matter).

    A part of an axis is a group of each rank's own; a shift has its edges at the ends of its axis.
    """
    if any(_is_part(step) for step in program.steps):
        return [([rank], mesh.coordinates(rank)) for rank in ranks]
    shifts = sorted({str(step.group[0]) for step in program.steps if step.kind == "shift"})
    if not shifts:
        return [(ranks, None)]
    found: dict[tuple[int, ...], list[int]] = {}
    for rank in ranks:
        where = mesh.coordinates(rank)
        edges = tuple((where[axis] == 0) - (where[axis] == mesh.axes[axis] - 1) for axis in shifts)
        found.setdefault(edges, []).append(rank)
    return [(members, mesh.coordinates(members[0])) for members in found.values()]


def _program(
    program: ClassProgram, profile: Profile, times: list[int], gpu: Gpu, own: dict[str, int] | None
) -> Program:
    """Operations of a class, or of those of it that are at the edges, or the one, where ``own`` is."""
    mesh = DeviceMesh(profile.mesh)
    made: list[Operation] = []
    place: dict[int, tuple[int, ...]] = {}
    launch: tuple[int, ...] = ()
    for at, step in enumerate(program.steps):
        if step.stream == HOST_STREAM:
            waits = tuple(sorted({n for d in step.deps for n in place[d]} | {*launch}))
            made.append(_launch(f"the host waits {at}", waits, 0, step.phase))
            place[at] = launch = (len(made) - 1,)
            continue
        # The GPU starts when the first kernel is launched; the others are launched while it works.
        launches = sum(count for _, count in step.kernels) or 1
        host = 0 if step.graphed else gpu.host.operator_time
        if host:
            made.append(_launch(f"launch {at}", launch, host, step.phase))
            launch = (len(made) - 1,)
        deps = tuple(sorted({n for d in step.deps for n in place[d]} | {*launch}))
        first = len(made)
        if step.kind == "shift":
            assert own is not None
            made.extend(_shift(step, at, deps, mesh, own))
        else:
            made.append(_operation(step, at, deps, profile, times, mesh, own))
        place[at] = tuple(range(first, len(made)))
        if host and launches > 1:
            made.append(_launch(f"launch the rest of {at}", launch, host * (launches - 1), step.phase))
            launch = (len(made) - 1,)
    at_all = " ".join(f"{axis} {coordinate}" for axis, coordinate in program.at.items()) or "every rank"
    return Program(at_all if own is None else f"like rank {mesh.rank(own)}", tuple(made))


def _launch(name: str, after: tuple[int, ...], duration_ps: int, phase: str) -> Operation:
    return Operation(name, OpKind.COMPUTE, CPU_STREAM, after, duration_ps=duration_ps, phase=phase)


def _shift(
    step: ProfiledOperation, at: int, deps: tuple[int, ...], mesh: DeviceMesh, own: dict[str, int]
) -> tuple[Operation, Operation]:
    """A message to the next along the axis and one from the one before, round its ends."""
    axis = str(step.group[0])
    size, place = mesh.axes[axis], own[axis]
    ends = [
        (OpKind.SEND, f"send {axis}", (place + 1) % size - place),
        (OpKind.RECV, "", (place - 1) % size - place),
    ]
    one, other = (
        Operation(
            f"{step.phase} {at} shift", kind, stream, deps, size_bytes=step.size_bytes,
            peer=Peer(axis=axis, offset=offset), phase=step.phase,
        )
        for kind, stream, offset in ends
    )  # fmt: skip
    return one, other


def _operation(
    step: ProfiledOperation,
    at: int,
    deps: tuple[int, ...],
    profile: Profile,
    times: list[int],
    mesh: DeviceMesh,
    own: dict[str, int] | None,
) -> Operation:
    if step.kind == "compute":
        return _computation(step, at, deps, profile, times)
    common: dict[str, Any] = {
        "name": f"{step.phase} {at} {step.kind}",
        "stream": step.stream,
        "deps": deps,
        "size_bytes": step.size_bytes,
        "phase": step.phase,
    }
    if step.peer is not None:
        kind = OpKind.SEND if step.kind == "send" else OpKind.RECV
        peer = Peer(axis=step.peer[0], offset=step.peer[1])
        return Operation(kind=kind, peer=peer, tag=step.tag, **common)
    common |= {"kind": OpKind.COLLECTIVE, "collective": step.kind, "root": step.root}
    if not _is_part(step):
        return Operation(axes=cast("tuple[str, ...]", step.group), **common)
    assert own is not None
    axis, places = cast("tuple[str, tuple[int, ...]]", step.group)
    return Operation(ranks=tuple(mesh.rank({**own, axis: p}) for p in places), **common)


def _computation(
    step: ProfiledOperation, at: int, deps: tuple[int, ...], profile: Profile, times: list[int]
) -> Operation:
    """Kernels in one, named after the one that takes longest."""
    longest = max(step.kernels, key=lambda pair: (times[pair[0]] * pair[1], -pair[0]), default=None)
    name = "nothing" if longest is None else profile.kernels[longest[0]][0]
    return Operation(
        f"{step.phase} {at} {name}",
        OpKind.COMPUTE,
        step.stream or COMPUTE_STREAM,
        deps,
        duration_ps=sum(times[k] * count for k, count in step.kernels),
        flops=sum(counted_flops(profile.kernels[k]) * count for k, count in step.kernels),
        bytes_moved=sum(profile.kernels[k][4] * count for k, count in step.kernels),
        phase=step.phase,
    )
