"""What the host does for a schedule node of Megatron-Core, beside an operator of torch; both without a GPU.

``COSIM_SCRIPTS=FOLDER python -m tests.lab.validation.schedule_nodes`` (10 s) runs ``TransformerLayerNode``,
as FOLDER's Megatron-LM has it, with a function of one operator, streams and events that do nothing: making
and running it forward, backward, and issuing weights' gradients apart, each less the function's own
operators, as multiples of an operator of a small layer, with its modules and autograd, forward and backward.
Beside it the calls to CUDA that a node makes. ``cosim.models.catalogue.schedule_nodes`` has these numbers.
Neither has what a GPU has besides: launches, allocations, the engine's own thread.
"""

from __future__ import annotations

import ast
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import torch

from tests.lab.validation.crosscheck_megatron import script
from tests.models.dispatched import dispatched

_SIZE = 4
_RUNS, _TURNS = 5, 2000
_CHAIN = 9
_FEW, _MANY = 1, 17
"""Experts of a node whose weights' gradients are issued apart."""


class _Experts(torch.nn.Module):  # type: ignore[misc]
    """A router, and two grouped layers with a matrix for each expert."""

    def __init__(self, experts: int) -> None:
        super().__init__()
        matrices = [torch.nn.Parameter(torch.zeros(_SIZE)) for _ in range(2 * experts)]
        grouped = [torch.nn.ParameterList(matrices[:experts]), torch.nn.ParameterList(matrices[experts:])]
        self.router, self.experts = torch.nn.Linear(_SIZE, _SIZE), torch.nn.ModuleList(grouped)

    def backward_dw(self) -> None:
        """Its products are no node's."""


def node_class(calls: Counter[str]) -> Any:
    """``TransformerLayerNode`` by its source; what it calls of CUDA is counted."""

    @contextmanager
    def stream(_: object) -> Iterator[None]:
        calls["stream"] += 2
        yield

    core = script().parent / "megatron" / "core"
    cuda = SimpleNamespace(stream=stream, Stream=object, Event=object)
    space: dict[str, Any] = {
        "torch": SimpleNamespace(cuda=cuda, Tensor=torch.Tensor),
        "Callable": Callable,
        "Variable": torch.autograd.Variable,
        "make_viewless_tensor": lambda inp, **_: inp,
        "internal_api": lambda one: one,
        "nvtx_range_push": lambda _: None,
        "nvtx_range_pop": lambda _: None,
        "CudaGraphModule": SimpleNamespace(moe_preprocess=None),
    }
    exec("from contextlib import contextmanager\nimport weakref", space)
    wanted = {"make_viewless", "ScheduleNode", "weak_method", "should_free_input", "TransformerLayerNode"}
    for folder in ("pipeline_parallel", "models/common"):
        file = core / folder / "utils.py"
        own = (ast.ClassDef, ast.FunctionDef)
        body = [
            one for one in ast.parse(file.read_text()).body if isinstance(one, own) and one.name in wanted
        ]
        future = ast.ImportFrom("__future__", [ast.alias("annotations")], 0)
        module = ast.fix_missing_locations(ast.Module([future, *body], []))
        exec(compile(module, str(file), "exec"), space)
    return space["TransformerLayerNode"]


def seconds(runs: Mapping[str, Callable[[], object]]) -> dict[str, float]:
    """Of a call of each, the least of many turns, in which all take their turn."""
    least = dict.fromkeys(runs, float("inf"))
    for _ in range(_TURNS):
        for name, run in runs.items():
            began = time.perf_counter()
            for _ in range(_RUNS):
                run()
            least[name] = min(least[name], (time.perf_counter() - began) / _RUNS)
    return least


def _layer() -> Callable[[], None]:
    """A layer's pass, forward and backward."""
    layer = torch.nn.Sequential(
        torch.nn.LayerNorm(_SIZE),
        torch.nn.Linear(_SIZE, _SIZE, bias=False),
        torch.nn.SiLU(),
        torch.nn.Linear(_SIZE, _SIZE, bias=False),
    )
    given, gradient = torch.ones(_SIZE, _SIZE, requires_grad=True), torch.ones(_SIZE, _SIZE)

    def run() -> None:
        (given + layer(given)).backward(gradient)

    run()  # gradients are there
    return run


def measured(calls: Counter[str]) -> dict[str, float]:
    """Operators that each takes as long as; ``calls``: CUDA's, of a node forward and backward."""
    made = node_class(calls)

    def called(name: str) -> Callable[..., None]:
        def call(*_: object) -> None:
            calls[name] += 1

        return call

    event = SimpleNamespace(wait=called("wait"), record=called("record"))
    torch.Tensor.record_stream = called("record_stream")
    config = SimpleNamespace(
        moe_ncclep_zero_copy=False, fp8="mxfp8", fp4=None, moe_token_dispatcher_type="alltoall",
        cuda_graph_modules=(),
    )  # fmt: skip
    weight, given = torch.ones(_SIZE, requires_grad=True), torch.ones(_SIZE, requires_grad=True) * 1
    gradient = torch.ones(_SIZE)

    def node(experts: _Experts | None = None) -> Any:
        extra = {
            "config": config, "is_moe": True, "num_local_experts": 16,
            "delay_wgrad_compute": experts is not None,
        }  # fmt: skip
        state, name = SimpleNamespace(), "pre_dispatch_computation"
        return made(None, event, state, state, lambda _, x: x * weight, name, experts, extra)

    def forward() -> Any:
        one = node()
        one.forward(given)
        return one

    def chain(length: int) -> None:
        one = given.detach().requires_grad_()
        for _ in range(length):
            one = one * weight
        one.backward(gradient)

    layer, few, many = _layer(), _Experts(_FEW), _Experts(_MANY)
    found = seconds(
        {
            "layer": layer,
            "operator": lambda: given * weight,
            "one": lambda: chain(1),
            "chain": lambda: chain(1 + _CHAIN),
            "forward": forward,
            "both": lambda: forward().backward(gradient),
            "node": lambda: node(few),
            "few": lambda: node(few).backward_dw(),
            "many": lambda: node(many).backward_dw(),
        }
    )
    calls.clear()
    forward().backward(gradient)
    unit = found["layer"] / dispatched(layer)[0]
    own = (found["chain"] - found["one"]) / _CHAIN - found["operator"]
    each = (found["many"] - found["few"]) / (_MANY - _FEW)
    return {
        "made and forward": (found["forward"] - found["operator"]) / unit,
        "backward": (found["both"] - found["forward"] - own) / unit,
        "weights' gradients apart": (found["few"] - found["node"] - _FEW * each) / unit,
        "... for each expert": each / unit,
    }


if __name__ == "__main__":
    torch.set_num_threads(1)
    counted: Counter[str] = Counter()
    for what, operators in measured(counted).items():
        print(f"{what:26} {operators:5.1f} operators")
    print("calls forward and backward:", ", ".join(f"{name} {count}" for name, count in counted.items()))
