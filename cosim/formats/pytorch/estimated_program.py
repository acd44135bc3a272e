"""One rank's program from an ET alone, which has no times: kernels are timed by the compute model.

Operators run in order of their nodes; those of autograd's threads where they stand, for the main thread
stands still meanwhile. An operator that does something on the GPU, calls no other that does, and isn't a
mere view is a kernel: matrix products and convolutions by their shapes, everything else by the bytes of its
tensors. The host takes its ``operator_time`` for each. A collective follows what was computed before; what
touches its buffers (the ET names each tensor's storage), or a ``wait`` for it, follows it. ``item`` has the
host wait for the GPU.

Not modelled: Python's time, several compute streams (an ET doesn't name streams), fusion inside an operator.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from cosim.errors import Location, WorkloadError
from cosim.files.import_report import ReportBuilder
from cosim.formats.pytorch.communication import FLOAT8, SILENT, RecordedComm, tensors
from cosim.formats.pytorch.execution_trace import ExecutionTrace, TraceNode
from cosim.gpu.gpus import DTYPE_BYTES, DType, Gpu
from cosim.gpu.kernels import Kernel, KernelKind, fused_attention, matmul, memory, total_flops
from cosim.gpu.timer import GpuTimer
from cosim.workload.program import COMM_STREAM, COMPUTE_STREAM, CPU_STREAM, Operation, OpKind, Program

_NO_KERNEL = re.compile(
    r"aten::(_?unsafe_view|view(_as)?|as_strided_?|slice|narrow|detach_?|empty.*|new_empty.*|result_type|t|transpose|"
    r"select|expand(_as)?|(un)?squeeze_?|(_?reshape(_alias)?)|permute|set_|resize_|record_stream|is_pinned|to|"
    r"contiguous|flatten|unflatten_dense_tensors|split.*|chunk|unbind|alias|lift_fresh|_nested_tensor.*|is_.*|size|stride|numel|diagonal)$"
)
_LOOK_UP = re.compile(r"embedding|::gather$|::index$|::index_select$")
_ITEM = "aten::_local_scalar_dense"
_STEP = re.compile(r"ProfilerStep#(\d+)$")
_TYPES: dict[str, DType] = {
    "float": "fp32", "double": "fp64", "c10::half": "fp16", "half": "fp16",
    "c10::bfloat16": "bf16", "bfloat16": "bf16",
    **{f"{space}float8_{kind}": "fp8" for space in ("", "c10::") for kind in FLOAT8},
}  # fmt: skip
Communicate = Callable[[RecordedComm, tuple[int, ...], int], Operation]


def steps(trace: ExecutionTrace) -> dict[int, int]:
    """The node of each ProfilerStep#N, by N."""
    found = {}
    for node in trace.nodes:
        match = _STEP.match(node.name)
        if match and len(match[1]) < 16:
            found[int(match[1])] = node.number
    return found


def of_step(trace: ExecutionTrace, step: int | None) -> list[TraceNode]:
    """Nodes of a step, by number; of all where ``step`` is None."""
    nodes = sorted(trace.nodes, key=lambda node: node.number)
    if step is None:
        return nodes
    begins = steps(trace)
    first = begins[step]
    after = min((number for number in begins.values() if number > first), default=None)
    return [node for node in nodes if node.number >= first and (after is None or node.number < after)]


@dataclass(slots=True)
class _EstimatedProgram:
    gpu: Gpu
    report: ReportBuilder
    timers: dict[DType, GpuTimer] = field(default_factory=dict)
    ops: list[Operation] = field(default_factory=list)
    host: tuple[int, ...] = ()
    gpu_last: tuple[int, ...] = ()
    waits: set[int] = field(default_factory=set)
    writing: dict[int, int] = field(default_factory=dict)
    """Storage -> the communication that writes it."""
    by_sequence: dict[int, int] = field(default_factory=dict)
    assumed: Counter[str] = field(default_factory=Counter)
    kernels: int = 0


def write(
    trace: ExecutionTrace,
    nodes: Sequence[TraceNode],
    gpu: Gpu,
    communicate: Communicate,
    report: ReportBuilder,
) -> tuple[Operation, ...]:
    """The program. ``communicate`` makes an operation of a communication, its dependencies and its number.

    Raises
    ------
    WorkloadError
        Shapes that make no sense, a number type that the GPU hasn't, or nothing that can be timed.
    """

    def on(one: Gpu, said: ReportBuilder) -> tuple[Operation, ...]:
        writer = _EstimatedProgram(one, said)
        working = _callers(nodes)
        on_host = 0
        for node in nodes:
            place = Location(trace.file, key=f"node {node.number} {node.name[:60]!r}")
            comm = trace.comms.get(node.number)
            if comm is not None:
                _communication(writer, node, comm, communicate)
            elif node.name == _ITEM and _on_gpu(node):
                _kernel(writer, node, memory(8), "fp32", place)
                writer.host = (*writer.host, *writer.gpu_last)
            elif node.number not in working and _is_kernel(node):
                for kernel in kernels(node, place):
                    _kernel(writer, node, kernel, _dtype(node), place)
            elif node.number not in working and _computes(node) and _devices(node) == {"cpu"}:
                on_host += 1
        for name, count in writer.assumed.most_common():
            said.assumed(f"{name}: as its tensors' bytes read and written", count)
        _check_timed(writer, trace, on_host)
        return tuple(writer.ops)

    clocked = gpu.clocked(lambda one: [Program("", on(one, ReportBuilder())).busy_ps])
    return on(clocked, report)


def _check_timed(writer: _EstimatedProgram, trace: ExecutionTrace, on_host: int) -> None:
    """Refuse a trace of which nothing can be timed; doubt one of which most can't, or is a guess."""
    count, guessed = writer.kernels, writer.assumed.total()
    where = f"{on_host:,} of {on_host + count:,} operators work on the CPU, whose time is in no compute model"
    if not count and not writer.by_sequence:
        raise WorkloadError(
            f"nothing can be timed: {where}" if on_host else "nothing can be timed: no operator computes",
            location=Location(trace.file),
            hint="record the ET while the model is on a GPU; of a model on a CPU `cosim profile` makes a job",
        )
    if on_host > count:
        writer.report.doubt("its operators", where, "an ET of the model on a GPU, or Kineto traces with it")
    if 2 * guessed > count:
        writer.report.doubt(
            "its operators",
            f"{guessed:,} of {count:,} are guesses, by tensors' bytes: {', '.join(writer.assumed)[:60]}",
            "Kineto traces with the ET, which have their times",
        )
    for dtype in writer.timers:
        if writer.gpu.calibration is None or dtype not in writer.gpu.calibration.dtypes:
            writer.report.doubt(
                f"times of {dtype} kernels on {writer.gpu.name}",
                writer.gpu.trust(dtype),
                "a GPU that was measured (`cosim list gpu`), or one that `cosim calibrate` measures",
            )


def kernels(node: TraceNode, place: Location) -> list[Kernel]:
    """What an operator asks of the GPU, by its shapes.

    Raises
    ------
    WorkloadError
        Shapes that make no sense.
    """
    shapes = node.input_shapes
    width = DTYPE_BYTES[_dtype(node)]
    try:
        if node.name in ("aten::mm", "aten::matmul"):
            one, other = shapes[:2]
            return [_product(one, other, width)]
        if node.name == "aten::addmm":
            one, other = shapes[1:3]
            return [_product(one, other, width)]
        if node.name in ("aten::bmm", "aten::baddbmm"):
            (batch, *one), (_, *other) = shapes[:2] if node.name == "aten::bmm" else shapes[1:3]
            return [_product(one, other, width, batch)]
        if node.name in (
            "aten::cudnn_convolution",
            "aten::miopen_convolution",
            "aten::convolution_overrideable",
        ):
            return [_convolution(node.output_shapes[0], shapes[1], width)]
        if node.name == "aten::convolution_backward":
            forward = _convolution(shapes[0], shapes[2], width)
            mask = node.inputs[-1]
            return [forward] * max(sum(bool(one) for one in mask[:2]), 1)
        if "scaled_dot_product" in node.name or "_flash_attention" in node.name:
            batch, heads, queries, depth = shapes[0]
            keys = shapes[1][2]
            _check_sizes([*shapes[0], keys])
            flops = 4 * batch * heads * queries * keys * depth * (5 if "backward" in node.name else 2) // 2
            return [fused_attention(flops, _moved(node))]
    except (TypeError, ValueError, IndexError, KeyError):
        raise WorkloadError(f"input shapes are {str(shapes)[:120]}", location=place) from None
    return [memory(_looked_up(node) if _LOOK_UP.search(node.name) else _moved(node))]


def _check_sizes(sizes: Sequence[Any]) -> None:
    if not all(type(size) is int and size >= 0 for size in sizes):
        raise ValueError


def _product(one: list[int], other: list[int], width: int, batch: int = 1) -> Kernel:
    """The product of two matrices, whose inner sizes are equal."""
    (rows, inner), (inner_too, columns) = one, other
    _check_sizes([batch, rows, inner, columns])
    if inner != inner_too:
        raise ValueError
    return matmul(rows, inner, columns, width, batch=batch)


def _convolution(out: list[int], weight: list[int], width: int) -> Kernel:
    """As a matrix product: places by channels of the weight; [N, K, ...] out, [K, C/groups, ...] weight."""
    _check_sizes([*out, *weight])
    if len(out) < 3:
        raise ValueError
    return matmul(out[0] * prod(out[2:]), prod(weight[1:]), weight[0], width)


def _callers(nodes: Sequence[TraceNode]) -> set[int]:
    """Operators that call another that is a kernel."""
    parent = {node.number: node.parent for node in nodes}
    found: set[int] = set()
    for node in nodes:
        if _is_kernel(node):
            above = node.parent
            while above in parent and above not in found:
                found.add(above)
                above = parent[above]
    return found


def _is_kernel(node: TraceNode) -> bool:
    return _computes(node) and _on_gpu(node)


def _computes(node: TraceNode) -> bool:
    return "::" in node.name and not node.name.startswith(
        ("c10d::", "nccl:", "autograd::", "torch::autograd", "torch.", "[")
    ) and not _NO_KERNEL.match(node.name) and node.name != _ITEM  # fmt: skip


def _on_gpu(node: TraceNode) -> bool:
    """Whether a tensor of it is on a device that computes: cuda, xpu, npu, hpu ..."""
    return bool(_devices(node) - {"cpu", "meta", ""})


def _devices(node: TraceNode) -> set[str]:
    """Kinds of devices that its tensors are on."""

    def found(value: list[Any]) -> Iterator[str]:
        if len(value) == 6 and isinstance(value[5], str):
            yield value[5].partition(":")[0]
        else:
            for part in value:
                if isinstance(part, list):
                    yield from found(part)

    return {*found(node.inputs), *found(node.outputs)}


def _looked_up(node: TraceNode) -> int:
    """Bytes read of a table: only the rows that come out."""
    out = sum(size for value in node.outputs for _, size in tensors(value))
    return out + sum(min(size, out) for value in node.inputs for _, size in tensors(value))


def _moved(node: TraceNode) -> int:
    return sum(size for value in (*node.inputs, *node.outputs) for _, size in tensors(value))


def _dtype(node: TraceNode) -> DType:
    for kind in node.types:
        match = re.search(r"Tensor\(([\w:]+)", str(kind))
        if match and match[1].lower() in _TYPES:
            return _TYPES[match[1].lower()]
    return "fp32"


def _kernel(
    writer: _EstimatedProgram, node: TraceNode, kernel: Kernel, dtype: DType, place: Location
) -> None:
    timer = writer.timers.get(dtype)
    if timer is None:
        try:
            timer = writer.timers[dtype] = writer.gpu.timer(dtype)
            writer.report.assumed(f"times of {dtype} kernels: {writer.gpu.trust(dtype)}")
        except ValueError as error:
            raise WorkloadError(str(error), location=place) from None
    issued = Operation(
        f"{node.name} issued", OpKind.COMPUTE, CPU_STREAM, _unique(writer.host), duration_ps=timer.host_ps(1)
    )
    writer.ops.append(issued)
    writer.host = (len(writer.ops) - 1,)
    touched = {storage for value in (*node.inputs, *node.outputs) for storage, _ in tensors(value)}
    writer.waits |= {writer.writing.pop(storage) for storage in touched & writer.writing.keys()}
    deps = _unique((*writer.host, *writer.gpu_last, *writer.waits))
    writer.waits.clear()
    writer.ops.append(
        Operation(
            node.name, OpKind.COMPUTE, COMPUTE_STREAM, deps, duration_ps=timer.kernel_ps(kernel),
            flops=total_flops([kernel]), bytes_moved=kernel.bytes_moved,
        )
    )  # fmt: skip
    writer.gpu_last = (len(writer.ops) - 1,)
    writer.kernels += 1
    writer.report.assumed(f"{kernel.kind.value} kernel timed by the compute model ({writer.gpu.name})")
    if kernel.kind is KernelKind.MEMORY and not node.name.startswith("aten::"):
        writer.assumed[node.name[:60]] += 1


def _communication(
    writer: _EstimatedProgram, node: TraceNode, comm: RecordedComm, communicate: Communicate
) -> None:
    if comm.kind in SILENT:
        return
    if comm.kind == "wait":
        if comm.sequence in writer.by_sequence:
            writer.waits.add(writer.by_sequence[comm.sequence])
        else:
            writer.report.ignored("wait for a communication from before the step")
        return
    issued = Operation(
        f"{comm.kind} issued", OpKind.COMPUTE, CPU_STREAM, _unique(writer.host),
        duration_ps=writer.gpu.host.operator_time,
    )  # fmt: skip
    writer.ops.append(issued)
    writer.host = (len(writer.ops) - 1,)
    writer.ops.append(communicate(comm, _unique((*writer.host, *writer.gpu_last)), len(writer.by_sequence)))
    number = len(writer.ops) - 1
    writer.by_sequence[comm.sequence] = number
    for value in (*node.inputs, *node.outputs):
        for storage, _ in tensors(value):
            writer.writing[storage] = number


def _unique(numbers: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted(set(numbers)))


def stream_for(comm: RecordedComm) -> str:
    """NCCL has a stream for each communicator."""
    return f"{COMM_STREAM} {comm.group}" if comm.group else COMM_STREAM
