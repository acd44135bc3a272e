"""Small PyTorch traces, ET and Kineto, for the tests: a rank's calls and GPU work with chosen times."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MAIN, AUTOGRAD = 100, 200


@dataclass
class Rank:
    """One rank's traces. Times are microseconds after ``origin``."""

    rank: int
    world_size: int = 1
    origin: int = 1_000_000
    events: list[dict[str, Any]] = field(default_factory=list)
    nodes: list[dict[str, Any]] = field(default_factory=list)
    correlation: int = 500

    def op(self, name: str, begin: int, end: int, thread: int = MAIN, inputs: Any = (), **args: Any) -> None:
        """An operator, in both traces."""
        number = len(self.nodes) + 1
        note = name.startswith(("ProfilerStep", "##", "nccl:"))
        self._event(
            "user_annotation" if note else "cpu_op", name, begin, end, thread, {"External id": number, **args}
        )
        outputs = [value for value in inputs if isinstance(value, list) and len(value) == 6]
        self.nodes.append(
            {"id": number + 10, "name": name, "rf_id": number - 1, "parent": 1,
             "tid": 1 if thread == MAIN else 2,
             "inputs": list(inputs), "input_shapes": [], "input_types": [], "outputs": outputs,
             "output_shapes": [], "output_types": []}
        )  # fmt: skip

    def cuda(self, name: str, begin: int, end: int, thread: int = MAIN) -> int:
        """A CUDA call; its correlation."""
        self.correlation += 1
        self._event("cuda_runtime", name, begin, end, thread, {"correlation": self.correlation})
        return self.correlation

    def kernel(
        self, name: str, begin: int, end: int, stream: int, correlation: int, category: str = "kernel"
    ) -> None:
        """Work on the GPU."""
        self._event(category, name, begin, end, stream, {"stream": stream, "correlation": correlation}, pid=0)

    def launch(self, name: str, at: int, begin: int, end: int, stream: int = 7, thread: int = MAIN) -> None:
        """A kernel and its launch, which takes 5 us of the thread."""
        self.kernel(name, begin, end, stream, self.cuda("cudaLaunchKernel", at, at + 5, thread))

    def collective(
        self,
        name: str,
        elements: int,
        at: int,
        begin: int,
        end: int,
        sequence: int,
        thread: int = MAIN,
        **said: Any,
    ) -> None:
        """A ``record_param_comms`` of 20 us with its NCCL kernel on stream 20."""
        tensor = [1, 2, 0, elements, 4, "cuda:0"]
        splits = said.get("splits", [])
        self.op("record_param_comms", at, at + 20, thread, [tensor, sequence, 4711, 0, name, splits, splits])
        self.cuda("cudaStreamWaitEvent", at + 2, at + 3, thread)
        self.launch("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWork*)", at + 5, begin, end, 20, thread)

    def wait(self, sequence: int, at: int, thread: int = MAIN) -> None:
        """The ``wait`` for a collective."""
        self.op("record_param_comms", at, at + 4, thread, [sequence, 0, 0, "wait", [], []])
        self.cuda("cudaStreamWaitEvent", at + 1, at + 2, thread)

    def _event(
        self, category: str, name: str, begin: int, end: int, thread: int, args: dict[str, Any], pid: int = 9
    ) -> None:
        self.events.append(
            {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": thread, "ts": self.origin + begin,
             "dur": end - begin, "args": args}
        )  # fmt: skip

    def et(self) -> dict[str, Any]:
        """The execution trace, schema 1.0.1."""
        return {"schema": "1.0.1", "pid": 9 + self.rank, "nodes": self.nodes}

    def kineto(self) -> dict[str, Any]:
        """The Kineto trace."""
        return {
            "schemaVersion": 1,
            "distributedInfo": {"rank": self.rank, "world_size": self.world_size},
            "traceEvents": [{"ph": "M", "name": "process_name"}, *self.events],
        }

    def write(self, folder: Path) -> None:
        """``et/rank0.json`` and ``kineto/rank0.json.gz``."""
        for name in ("et", "kineto"):
            (folder / name).mkdir(exist_ok=True, parents=True)
        (folder / "et" / f"rank{self.rank}.json").write_text(json.dumps(self.et()))
        packed = gzip.compress(json.dumps(self.kineto()).encode())
        (folder / "kineto" / f"rank{self.rank}.json.gz").write_bytes(packed)


def data_parallel(rank: int, world_size: int, late: int = 0) -> Rank:
    """A step: 100 us on the host, a kernel, backward by autograd with an all-reduce, a wait, a copy back.

    The rank begins ``late`` us after the others, who wait for it in the all-reduce.
    """
    made = Rank(rank, world_size, origin=1_000_000 + late)
    wait = 60 - late  # from this rank's arrival to the last one's
    done = 330 + wait + 140
    made.op("ProfilerStep#3", 0, done + 100)
    made.op("aten::mm", 90, 110)
    made.launch("gemm", 100, 110, 160)
    made.op("## backward ##", 200, 400)
    made.op("autograd::engine::evaluate_function: MmBackward0", 210, 390, AUTOGRAD)
    made.launch("gemm_backward", 220, 230, 280, thread=AUTOGRAD)
    made.collective("allreduce", 250_000, 300, 330, done, 12, AUTOGRAD)
    made.wait(12, 405)
    made.op("aten::add_", 412, 424)
    made.launch("adam", 414, done + 2, done + 22)
    made.op("aten::item", 430, done + 40)
    copy = made.cuda("cudaMemcpyAsync", 432, 440)
    made.kernel("Memcpy DtoH (Device -> Pageable)", done + 23, done + 25, 7, copy, "gpu_memcpy")
    made.cuda("cudaStreamSynchronize", 441, done + 35)
    return made
