"""What Inductor makes of a graph: its lowering and its scheduler's fusions for a CUDA GPU, without any code.

Kernels are those that the scheduler would have Triton generate, each with the bytes that it reads and writes
by the scheduler's own count (buffers that only the kernel uses are in none), and those of libraries
(products, attention), as :mod:`cosim.profiler.inside.kernels` has them. Not done, because that times kernels
on a GPU: autotuning (``max-autotune`` keeps the libraries' products) and padding of products.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch._inductor import compile_fx, config, ir, scheduler
from torch._inductor.constant_folding import ConstantFolder
from torch._inductor.debug import DebugContext
from torch._inductor.graph import GraphLowering
from torch._inductor.utils import get_fused_kernel_name
from torch._inductor.virtualized import V
from torch._prims.rng_prims import graphsafe_run_with_rng_state
from torch.utils._python_dispatch import TorchDispatchMode

from cosim.profiler.inside.kernels import Cost, cost, number_type
from cosim.profiler.inside.recorder import all_tensors, is_collective

_LONGEST_NAME = 60


@dataclass(frozen=True)
class Launch:
    """One thing that a compiled graph issues: a kernel, or a collective of its graph, by name, or the wait
    for one. ``fused``: generated, with so many of Inductor's nodes in it; 0: a library's.
    """

    kernel: Cost | None = None
    fused: int = 0
    collective: str = ""
    waits_for: str = ""


@dataclass(frozen=True)
class GraphSchedule:
    """What a graph issues, in order; ``uncapturable``: why no CUDA graph can be made of it."""

    launches: tuple[Launch, ...]
    uncapturable: str


class _OnHost(TorchDispatchMode):
    """Constants are folded by their values, which the GPU that is stood in for doesn't keep."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named = {
            key: torch.device("cpu") if key == "device" else value for key, value in (kwargs or {}).items()
        }
        return func(*args, **named)


@cache
def install() -> None:
    """Have constants folded on the host, and fusions made without Triton; start no compilers."""
    config.compile_threads = 1  # more are processes, which it starts for code that nobody generates
    plain = ConstantFolder.run

    def run(folder: Any, *given: Any, **named: Any) -> Any:
        with _OnHost():
            return plain(folder, *given, **named)

    ConstantFolder.run = run  # type: ignore[method-assign]
    scheduler.has_triton = lambda *_: True  # type: ignore[assignment]  # fusing needs no Triton, generating does


def lower(
    gm: torch.fx.GraphModule, inputs: Sequence[Any], *, backward: bool, inference: bool
) -> GraphSchedule:
    """Lower and schedule a graph of ATen operators, as ``compile_fx`` does; ``gm`` is changed.

    Raises
    ------
    Exception
        Whatever Inductor raises at what it can't lower without a GPU.
    """
    compile_fx.view_to_reshape(gm)
    with torch.no_grad():
        mode = compile_fx.fake_tensor_prop(gm, inputs)
    compile_fx._recursive_record_original_output_strides(gm)
    with V.set_fake_mode(mode), V.set_debug_handler(DebugContext()):
        compile_fx._recursive_post_grad_passes(gm, is_inference=inference)
        graph = GraphLowering(
            gm, example_inputs=inputs, shape_env=mode.shape_env, is_backward=backward, is_inference=inference
        )
        with V.set_graph_handler(graph), V.set_extern_kernel_nodes([]):
            graph.run(*inputs)
            graph.init_wrapper_code()
            graph._update_scheduler()
            launches = [launch for node in graph.scheduler.nodes for launch in _launches(node)]
        return GraphSchedule(tuple(launches), _uncapturable(gm, graph))


def _uncapturable(gm: torch.fx.GraphModule, graph: GraphLowering) -> str:
    from torch._inductor.cudagraph_utils import check_multiple_devices_or_any_cpu_nodes
    from torch._inductor.utils import get_first_incompatible_cudagraph_node

    if (node := get_first_incompatible_cudagraph_node(gm)) is not None:
        return f"incompatible operator {node.target}"
    why = graph.disable_cudagraphs_reason or check_multiple_devices_or_any_cpu_nodes(
        graph.device_node_mapping
    )
    return (why or "").partition(".")[0]


def _launches(node: scheduler.BaseSchedulerNode) -> list[Launch]:
    if isinstance(node, scheduler.NopKernelSchedulerNode):
        return []
    if isinstance(node, scheduler.ExternKernelSchedulerNode):
        return _library(node.node)
    if isinstance(node, scheduler.GroupedSchedulerNode):
        return [launch for each in node.snodes for launch in _launches(each)]
    device = node.get_device()
    if device is None or device.type != "cuda":
        return []
    return [_generated(node)]


def _generated(node: scheduler.BaseSchedulerNode) -> Launch:
    parts = list(node.get_nodes())
    reduces = any(part.is_reduction() for part in parts)
    name = get_fused_kernel_name(parts, "original_aten")[:_LONGEST_NAME].rstrip("_")
    moved = node.get_read_write_buffers_sizes()
    types = [buffer.node.get_dtype() for part in parts for buffer in part.get_outputs() if buffer.node]
    dtype = next((each for each in types if each.is_floating_point), types[0] if types else torch.float32)
    name = f"inductor.{'red' if reduces else 'poi'}_{name}"
    spent = Cost(name, "memory", number_type(dtype), 0, int(moved), (0, 0, 0, 0))
    return Launch(spent, fused=len(parts))


def _library(node: Any) -> list[Launch]:
    """A product, attention, a collective ...: whatever Inductor calls and doesn't generate."""
    if isinstance(node, ir.MultiOutput):
        return []
    origins = list(
        dict.fromkeys((*([node.get_origin_node()] if node.get_origin_node() else []), *node.get_origins()))
    )
    if isinstance(node, ir._WaitKernel):
        waited = _collective(_of(origins, "wait_tensor").args[0])
        return [Launch(waits_for=waited)] if waited else []
    if isinstance(node, ir._CollectiveKernel):
        return [Launch(collective=next(each.name for each in origins if is_collective(each.target)))]
    # What it is of, and not what its buffer became: an all-reduce in place takes that over.
    origin = _of(origins, node.python_kernel_name or "")
    target, args, kwargs = _called(origin)
    args, kwargs = torch.fx.map_arg((args, kwargs), _value)
    out = _value(origin)
    tensors = all_tensors((*args, *kwargs.values()))
    results = all_tensors((out,))
    if target.is_view or not any(t.device.type == "cuda" for t in (*tensors, *results)):
        return []  # views of complex numbers are library calls to Inductor, but nothing is launched
    schema = target._schema
    changed = [
        value
        for argument, value in zip(schema.arguments, args, strict=False)
        if argument.alias_info is not None and argument.alias_info.is_write
    ]
    name = schema.name.replace("::", ".")
    spent = cost(target, name, args, kwargs, out, tensors, all_tensors(changed), results)
    return [Launch(spent)]


def _of(origins: Sequence[torch.fx.Node], kernel: str) -> Any:
    """The operator that a kernel is called for: the only one, or by its name."""
    for each in origins:
        if each.target is graphsafe_run_with_rng_state:
            return each
    operators = [each for each in origins if isinstance(each.target, torch._ops.OpOverload)]
    for each in operators:
        if each.target._opname in kernel or len(operators) == 1:
            return each
    raise NotImplementedError(
        f"which operator {kernel or 'a kernel'} is called for: {[str(o) for o in origins]}"
    )


def _called(node: torch.fx.Node) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """An operator and what it is given; of one that draws the same numbers when it is run again, itself."""
    if node.target is not graphsafe_run_with_rng_state:
        return node.target, node.args, node.kwargs
    operator, *args = node.args
    return operator, tuple(args), {key: value for key, value in node.kwargs.items() if key != "rng_state"}


def _collective(node: torch.fx.Node) -> str:
    """Which collective's result this is, taken out of a list or not; "": one that came in, of another graph,
    which waited for it (a result of a forward graph that is saved, and waited for again in backward).
    """
    while not is_collective(node.target):
        if not node.args:
            return ""
        node = node.args[0]  # type: ignore[assignment]
    return node.name


def _value(node: torch.fx.Node) -> Any:
    return node.meta.get("val")
