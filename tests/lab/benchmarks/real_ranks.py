"""An unmodified GPU script run for real: gloo processes on the CPU, its third iteration under torch.profiler.

``python -m tests.lab.benchmarks.real_ranks 4 iteration.json SCRIPT [ARGUMENTS]`` starts 4 ranks as torchrun
would. What the script asks of ``cuda`` happens on the CPU (``cuda_on_host``), ``nccl`` is gloo;
nothing else is changed and nothing recorded by cosim. The third iteration of rank 0 is written (in the second
DDP orders its buckets anew): products and collectives in the order in which they were issued, with FLOPs and
bytes by the shapes that torch.profiler saw.
"""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

_KINDS = {
    "c10d::allreduce_": "all_reduce", "c10d::broadcast_": "broadcast", "c10d::_allgather_base_": "all_gather",
    "c10d::allreduce_coalesced_": "all_reduce", "c10d::allgather_into_tensor_coalesced_": "all_gather",
    "c10d::reduce_scatter_tensor_coalesced_": "reduce_scatter",
    "c10d::allgather_": "all_gather", "c10d::_reduce_scatter_base_": "reduce_scatter",
    "c10d::reduce_scatter_": "reduce_scatter", "c10d::alltoall_base_": "all_to_all",
    "_c10d_functional::all_gather_into_tensor": "all_gather",
    "_c10d_functional::reduce_scatter_tensor": "reduce_scatter",
    "c10d::barrier": "barrier", "c10d::send": "send", "c10d::recv_": "recv",
}  # fmt: skip
_GIVEN_SECOND = ("all_gather", "reduce_scatter", "all_to_all")
"""Their operators take the output first."""
_BYTES = {"float": 4, "double": 8, "long int": 8, "int": 4, "c10::BFloat16": 2, "c10::Half": 2, "bool": 1,
          "unsigned char": 1, "signed char": 1}  # fmt: skip


def run(
    ranks: int, script: str, arguments: Sequence[str], *, module: bool = False, folder: str | None = None,
    iteration: int = 2, environment: Mapping[str, str] = {},
) -> list[tuple[str, int]]:  # fmt: skip
    """(``product``, FLOPs) and (collective, bytes) of rank 0's ``iteration`` (from 0), as issued.
    ``environment``: what the ranks have beside this process's.

    Raises
    ------
    RuntimeError
        A rank that fails: its last words.
    """
    with tempfile.TemporaryDirectory() as place:
        out = Path(place, "iteration.json")
        given = {**os.environ, **environment}
        command = ["-m" if module else "-f", str(iteration), script, *arguments]
        processes = [_rank(rank, ranks, out, command, folder, given) for rank in range(ranks)]
        failed = _ended(processes)
        if failed is not None or not out.exists():
            said = Path(place, f"{failed or 0}.log").read_text(errors="replace")
            raise RuntimeError(f"rank {failed or 0}: {said[-2000:]}")
        return [(kind, size) for kind, size in json.loads(out.read_text())]


def _ended(processes: Sequence[subprocess.Popen[bytes]]) -> int | None:
    """Wait for all; the rank that failed first, if one did. Its peers, which would wait for it, are ended."""
    running = dict(enumerate(processes))
    while running:
        for rank, process in list(running.items()):
            if process.poll() is None:
                continue
            del running[rank]
            if process.returncode:
                for other in running.values():
                    other.kill()
                    other.wait()
                return rank
        time.sleep(0.1)
    return None


def _rank(
    rank: int, ranks: int, out: Path, command: Sequence[str], folder: str | None, given: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    environment = {
        **given, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(ranks),
        "LOCAL_WORLD_SIZE": str(ranks), "GROUP_RANK": "0", "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(20_000 + os.getpid() % 20_000), "OMP_NUM_THREADS": "1", "COSIM_REAL_OUT": str(out),
        "TORCHELASTIC_RUN_ID": "real", "TORCHDYNAMO_DISABLE": "1", "PYTHONWARNINGS": "ignore",
        "PYTHONPATH": f"{Path(__file__).parents[3]}{os.pathsep}{given.get('PYTHONPATH', '')}",
    }  # fmt: skip
    with out.with_name(f"{rank}.log").open("wb") as said:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "tests.lab.benchmarks.real_ranks", "--rank", *command],
            env=environment,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
        )


def _be_a_rank(module: bool, iteration: int, script: str, arguments: list[str]) -> None:
    import torch
    import torch.distributed as dist
    from torch.distributed import distributed_c10d as c10d

    from tests.lab.benchmarks import cuda_on_host

    cuda_on_host.install(int(os.environ["LOCAL_WORLD_SIZE"]), int(os.environ["LOCAL_RANK"]))
    start = c10d.init_process_group

    def init_process_group(backend: Any = None, *_: Any, **given: Any) -> None:
        kept = ("timeout", "store", "rank", "world_size", "init_method")
        start("gloo", **{key: value for key, value in given.items() if key in kept})

    dist.init_process_group = c10d.init_process_group = init_process_group
    for loaded in list(sys.modules.values()):
        if getattr(loaded, "init_process_group", None) is start:
            loaded.init_process_group = init_process_group  # type: ignore[attr-defined]
    _mark_alone(torch, c10d)
    _watch(torch, Path(os.environ["COSIM_REAL_OUT"]), int(os.environ["RANK"]), iteration)
    sys.argv = [script, *arguments]
    sys.path.insert(0, str(Path.cwd()) if module else str(Path(script).resolve().parent))
    if module:
        runpy.run_module(script, run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(script, run_name="__main__")


_ALONE = "in a group of one"


def _mark_alone(torch: Any, groups: Any) -> None:
    """What a rank sends to nobody but itself, so that it can be told apart in the trace."""
    for name in ("allreduce", "allreduce_coalesced", "allgather", "_allgather_base", "broadcast", "barrier",
                 "allgather_into_tensor_coalesced", "reduce_scatter", "_reduce_scatter_base", "alltoall_base",
                 "reduce_scatter_tensor_coalesced"):  # fmt: skip
        plain = getattr(groups.ProcessGroup, name)

        def call(self: Any, *args: Any, plain: Any = plain, **given: Any) -> Any:
            if self.size() > 1:
                return plain(self, *args, **given)
            with torch.profiler.record_function(_ALONE):
                return plain(self, *args, **given)

        setattr(groups.ProcessGroup, name, call)


class _Engine:
    """Autograd's engine, which counts its runs: whoever starts a backward, does it here."""

    def __init__(self, engine: Any) -> None:
        self.engine, self.runs = engine, 0

    def run_backward(self, *args: Any, **given: Any) -> Any:
        self.runs += 1
        return self.engine.run_backward(*args, **given)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)


def _watch(torch: Any, out: Path, rank: int, iteration: int) -> None:
    """Profile from one iteration's last optimizer step to the next one's, the first from the start."""
    from torch.optim.optimizer import register_optimizer_step_post_hook

    profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True)
    engine = torch.autograd.Variable._execution_engine = _Engine(torch.autograd.Variable._execution_engine)
    seen = {"iterations": 0, "steps": 0, "each": 0}

    def after(*_: Any) -> None:
        if engine.runs:  # a backward since, perhaps within the step: a new iteration's first optimizer
            if seen["iterations"] == 1:
                seen["each"] = seen["steps"]  # optimizers, or parameters that have one each
            engine.runs, seen["steps"] = 0, 0
            seen["iterations"] += 1
        seen["steps"] += 1
        if seen["steps"] != max(1, seen["each"]):
            return
        if seen["iterations"] == iteration:
            profiler.start()
        elif seen["iterations"] == iteration + 1:
            profiler.stop()
            if rank == 0:
                trace = out.with_suffix(".trace")
                profiler.export_chrome_trace(str(trace))
                out.write_text(json.dumps(_read(json.loads(trace.read_text())["traceEvents"])))
            torch.distributed.barrier()
            os._exit(0)

    if not iteration:
        profiler.start()
    register_optimizer_step_post_hook(after)


def _read(events: list[dict[str, Any]]) -> list[tuple[str, int]]:
    """What was issued, in order; what a group of one rank exchanges is no exchange."""
    done = sorted((e for e in events if e.get("ph") == "X"), key=lambda e: e["ts"])
    types: dict[str, list[list[str]]] = {}  # by shapes, as they were carried out
    for e in done:
        if e.get("name", "").startswith("gloo:") and "Input Dims" in e.get("args", {}):
            types.setdefault(json.dumps(e["args"]["Input Dims"]), []).append(e["args"]["Input type"])
    found = []
    parts: set[int] = set()  # of what is one product, or one exchange, on a GPU
    alone = [(e["ts"], e["ts"] + e["dur"], e["tid"]) for e in done if e.get("name") == _ALONE]
    for place, event in enumerate(done):
        if any(start <= event["ts"] <= end and event["tid"] == thread for start, end, thread in alone):
            continue
        name, args = event.get("name", ""), event.get("args", {})
        if id(event) in parts:
            continue
        if _holds_its_like(done, place):  # DTensor's, of the whole: the rank's own is inside
            continue
        if name in _KINDS:  # a functional one calls the group's: one exchange
            parts.update(id(e) for e in _inside(done, place) if _KINDS.get(e["name"]) == _KINDS[name])
            found.append((_KINDS[name], _bytes(name, _KINDS[name], args, types)))
        elif name == "aten::_grouped_mm":  # here one expert's rows are multiplied after the other's
            inside = {id(e): _flops(e["name"], e.get("args", {})) for e in _inside(done, place)}
            parts.update(inside)
            found.append(("product", sum(inside.values())))
        elif flops := _flops(name, args):
            found.append(("product", flops))
    return found


def _inside(done: list[dict[str, Any]], place: int) -> Iterator[dict[str, Any]]:
    """What an event's thread does during it."""
    event = done[place]
    for other in done[place + 1 :]:
        if other["ts"] > event["ts"] + event["dur"]:
            return
        if other["tid"] == event["tid"]:
            yield other


_DISPATCHED = ("aten::mm", "aten::addmm", "aten::bmm", "aten::_scaled_dot_product_flash_attention_for_cpu")


def _holds_its_like(done: list[dict[str, Any]], place: int) -> bool:
    name = done[place].get("name", "")
    return name.startswith(_DISPATCHED) and any(other["name"] == name for other in _inside(done, place))


def _bytes(name: str, kind: str, args: dict[str, Any], types: dict[str, list[list[str]]]) -> int:
    """What is given; of an all-to-all what is given or got, whichever is more."""
    if kind == "barrier":
        return 0
    second = kind in _GIVEN_SECOND and name.startswith("c10d::")
    given = args["Input Dims"][1 if second else 0]
    shapes = given if given and isinstance(given[0], list) else [given]
    told = types.get(json.dumps(shapes)) or [["float"] * len(shapes)]
    kinds = told.pop(0) if len(told) > 1 else told[0]
    if kind == "all_to_all":
        shapes = [max(args["Input Dims"][:2], key=prod)]
    return sum(prod(shape) * _BYTES.get(each, 4) for shape, each in zip(shapes, kinds, strict=False))


def _flops(name: str, args: dict[str, Any]) -> int:
    """Of the products that torch's CPU kernels are called for, by their shapes."""
    dims = args.get("Input Dims", [])
    if name.startswith("aten::convolution"):
        return _of_convolution(dims, args["Concrete Inputs"], backward=name.endswith("backward"))
    if name in ("aten::mm", "aten::bmm"):
        a, b = dims[0], dims[1]
    elif name in ("aten::addmm", "aten::baddbmm"):
        a, b = dims[1], dims[2]
    elif name == "aten::_scaled_dot_product_flash_attention_for_cpu":
        (batch, heads, rows, width), columns = dims[0], dims[1][2]
        return int(4 * batch * heads * rows * columns * width)
    elif name == "aten::_scaled_dot_product_flash_attention_for_cpu_backward":
        (batch, heads, rows, width), columns = dims[1], dims[2][2]
        return int(10 * batch * heads * rows * columns * width)
    else:
        return 0
    batch = a[0] if len(a) == 3 else 1
    return int(2 * batch * a[-2] * a[-1] * b[-1])


def _of_convolution(dims: list[Any], given: list[str], *, backward: bool) -> int:
    """A product for each place of the result; backward one for each gradient that is asked for."""
    if backward:
        (rows, _, *places), weight = dims[0], dims[2]
        asked = sum(json.loads(given[10].lower())[:2])
    else:
        (rows, _, *lengths), weight = dims[0], dims[1]
        stride, padding, dilation = (json.loads(given[k]) for k in (3, 4, 5))
        kernel, asked = weight[2:], 1
        places = [
            (length + 2 * p - d * (k - 1) - 1) // s + 1
            for length, p, d, k, s in zip(lengths, padding, dilation, kernel, stride, strict=True)
        ]
    return int(2 * asked * rows * prod(places) * prod(weight))


if __name__ == "__main__":
    if sys.argv[1] == "--rank":
        _be_a_rank(sys.argv[2] == "-m", int(sys.argv[3]), sys.argv[4], sys.argv[5:])
    else:
        issued = run(int(sys.argv[1]), sys.argv[3], sys.argv[4:])
        Path(sys.argv[2]).write_text(json.dumps(issued))
