"""Small traces of PyTorch, of each kind that is read, of which a value or bytes are damaged."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from cosim.context import Context
from cosim.errors import CosimError
from cosim.formats.chakra.read import ChakraWorkload
from cosim.formats.pytorch.read import PyTorchWorkload
from cosim.gpu.catalogue import V100_SXM2
from cosim.workload.check import check
from cosim.workload.contract import WorkloadSpec
from tests.formats.pytorch.trace_files import Rank, data_parallel
from tests.lab.fuzz.damage import changed, damaged
from tests.lab.fuzz.importers import Folder
from tests.lab.fuzz.tally import Inputs, Target, drawn


class Traces(Folder):
    """Traces of which one value is another, or of which bytes are."""

    def __init__(self, values: Mapping[str, Any], specs: Sequence[WorkloadSpec]) -> None:
        self._values = values

        def read(folder: Path) -> object:
            found: list[object] = []
            refused: list[CosimError] = []
            for spec in specs:
                try:
                    workload = spec.build(Context(folder))
                    check(workload)
                    found.append(workload)
                except CosimError as error:
                    refused.append(error)
            if refused:
                raise refused[0]
            return found

        super().__init__({name: json.dumps(one).encode() for name, one in values.items()}, read)
        read(self._place)  # undamaged, each is read

    def inputs(self) -> Inputs:
        """A file's name, and what is in it."""

        def make(draw: Random) -> tuple[str, bytes]:
            name = draw.choice(self._names)
            if draw.random() < 0.2:
                return name, damaged(draw, [self._files[name]])
            value = self._values[name]
            for _ in range(draw.randint(1, 3)):
                value = changed(draw, value)
            return name, json.dumps(value).encode()

        return drawn(make)


def _two_ranks() -> Traces:
    """Both traces of each rank, with groups and a kernel of DeepEP's."""
    one, two = data_parallel(0, 2), data_parallel(1, 2, late=60)
    two.launch("void deep_ep::intranode::dispatch<8, 768, 8192>(int4*)", 25, 40, 45)
    files = {
        f"{name}{rank.rank}.json": getattr(rank, name)() for rank in (one, two) for name in ("et", "kineto")
    }
    for name in ("kineto0.json", "kineto1.json"):
        files[name]["distributedInfo"]["pg_config"] = [{"pg_name": "0", "pg_size": 2, "ranks": [0, 1]}]
    both = PyTorchWorkload(et="et*.json", kineto="kineto*.json")
    return Traces(files, (both, PyTorchWorkload(kineto="kineto*.json", collectives="measured")))


def _said(
    made: Rank, groups: Mapping[str, Sequence[int]], said: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """A trace of one step with these communications, one after the other."""
    made.op("ProfilerStep#1", 0, 100 * len(said))
    for k, one in enumerate(said):
        ranks = groups[one["Process Group Name"]]
        made.op("record_param_comms", 100 * k + 10, 100 * k + 30)
        sizes = {"Group size": len(ranks), "Process Group Ranks": str(ranks), "dtype": "Float8_e4m3fnuz"}
        counts = {"Seq": k, "In msg nelems": 40, "Out msg nelems": 40}
        made.events[-1]["args"].update({**sizes, **counts, **one})
        made.launch("ncclDevKernel_SendRecv(int)", 100 * k + 15, 100 * k + 40, 100 * k + 90, 20)
    trace = made.kineto()
    trace["distributedInfo"]["pg_config"] = [
        {"pg_name": name, "pg_size": len(ranks), "ranks": ranks} for name, ranks in groups.items()
    ]
    return trace


def _one_of_a_mesh() -> Traces:
    """Rank 5 of dp 4 x tp 2, with a kernel of symmetric memory."""
    groups = {"tp": [4, 5], "dp": [1, 3, 5, 7], "all": [*range(8)]}
    called = {"allreduce": "tp", "_allgather_base": "dp", "_reduce_scatter_base": "dp", "barrier": "all"}
    made = Rank(5, 8)
    made.op("symm_mem::one_shot_all_reduce", 391, 396)
    made.events[-1]["args"].update(
        {"Input Dims": [[16, 8], [], []], "Input type": ["c10::BFloat16", "", ""],
         "Concrete Inputs": ["", "sum", "tp"]}
    )  # fmt: skip
    made.launch("void one_shot_all_reduce_kernel<c10::BFloat16, 16, 4>(int)", 391, 397, 440)
    said = [{"Collective name": name, "Process Group Name": group} for name, group in called.items()]
    one = PyTorchWorkload(kineto="rank5.json")
    measured = one.model_copy(update={"collectives": "measured"})
    return Traces({"rank5.json": _said(made, groups, said)}, (one, measured))


def _messages() -> Traces:
    """Two ranks that send each other what is uneven, rooted, or a message."""
    rooted = {"Process Group Name": "tp", "Root Rank": 0}
    files = {}
    for rank in range(2):
        way = ("send", "Dst Rank") if rank == 0 else ("recv", "Src Rank")
        uneven = {
            "In split size": ("[30, 10]", "[0, 40]")[rank],
            "Out split size": ("[30, 0]", "[10, 40]")[rank],
        }
        said: list[dict[str, Any]] = [
            {"Collective name": "all_to_allv", "Process Group Name": "tp", **uneven},
            {"Collective name": "scatter", **rooted},
            {"Collective name": "gather", **rooted},
            {"Collective name": way[0], way[1]: 1 - rank, "Process Group Name": "tp"},
        ]
        files[f"rank{rank}.json"] = _said(Rank(rank, 2), {"tp": [0, 1]}, said)
    return Traces(files, (PyTorchWorkload(kineto="rank*.json"),))


def _behind() -> Traces:
    """Steps whose GPU is behind the host, with streams that wait for each other, a copy, and AMD's names."""
    made, free = Rank(0), {7: 0, 8: 0}
    for step in range(4):
        at = 60 * step
        for k, stream in enumerate((7, 8, 7)):
            begin = max(at + 10 * k + 8, free[stream])
            free[stream] = begin + 100
            made.launch("Cijk_Ailk_Bljk_HHS_BH_MT128x128", at + 10 * k, begin, free[stream], stream)
        made.cuda("cudaStreamWaitEvent", at + 36, at + 37)
        copy = made.cuda("hipMemcpyAsync", at + 40, at + 42)
        made.kernel("CopyDeviceToDevice", free[7], free[7] + 5, 7, copy, "gpu_memcpy")
        free[7] += 5
        made.op(f"ProfilerStep#{step + 1}", at, at + 50)
    made.cuda("hipDeviceSynchronize", 300, max(free.values()) + 3)
    last = PyTorchWorkload(kineto="rank0.json", step=3)
    return Traces({"rank0.json": made.kineto()}, (last, last.model_copy(update={"step": "all"})))


def _operators() -> Traces:
    """An execution trace of the newer schema, timed by a GPU's model."""

    def node(
        number: int, name: str, values: list[Any], shapes: list[Any], types: list[str]
    ) -> dict[str, Any]:
        return {
            "id": number, "name": name, "ctrl_deps": 1,
            "inputs": {"values": values, "shapes": shapes, "types": types},
            "outputs": {"values": values[:1], "shapes": shapes[:1], "types": types[:1]},
            "attrs": [{"name": "rf_id", "type": "uint64", "value": number},
                      {"name": "pg_name", "type": "string", "value": "0"}],
        }  # fmt: skip

    tensor, kind = [7, 7, 0, 64 * 64, 4, "cuda:0"], "Tensor(float)"
    convolved = [[2, 3, 8, 8], [4, 3, 3, 3], [4], [], [], [], [], [], []]
    nodes = [
        node(2, "ProfilerStep#3", [], [], []),
        node(3, "aten::mm", [tensor, tensor], [[64, 64]] * 2, [kind] * 2),
        node(4, "aten::convolution", [tensor, tensor, tensor, [1, 1], [0, 0], [1, 1], False, [0, 0], 1],
             convolved, [kind] * 3 + ["GenericList[Int,Int]"] * 6),
        node(5, "aten::bmm", [tensor, tensor], [[2, 8, 8]] * 2, [kind] * 2),
        node(6, "aten::add_", [tensor, tensor, 1], [[64, 64], [64, 64], []], [kind, kind, "Int"]),
        node(7, "record_param_comms", [[tensor], 3, ["0", "default"], 0, "allreduce", [], [], 0, 1, 2],
             [[[64, 64]], *[[]] * 9], ["GenericList[Tensor(float)]", *["Int"] * 9]),
    ]  # fmt: skip
    for one in nodes[1:]:
        one["ctrl_deps"] = 2
    trace = {"schema": "1.1.1-chakra.0.0.4", "pid": 1, "nodes": nodes}
    return Traces({"et.json": trace}, (PyTorchWorkload(et="et.json", gpu=V100_SXM2),))


def _chakra() -> Traces:
    """Chakra's JSON, with a system's roofline."""
    attributes = [{"name": "num_ops", "int64_val": 10**12}, {"name": "tensor_size", "uint64_val": 10**9}]
    graph = [
        {"Id": 0, "Name": "a", "NodeType": 4, "data_deps": [], "attr": attributes, "runtime": 5},
        {"Id": 1, "Name": "b", "NodeType": 4, "data_deps": [0], "num_ops": 10**9, "tensor_size": 10**9},
    ]
    files = {
        "graph.0.json": {"workload_graph": graph},
        "system.json": {"roofline-enabled": 1, "peak-perf": 312, "local-mem-bw": 2039},
    }
    return Traces(files, (ChakraWorkload(path="graph", roofline="system.json"),))


MADE: dict[str, Callable[[], Traces]] = {
    "two ranks": _two_ranks,
    "one of a mesh": _one_of_a_mesh,
    "messages": _messages,
    "behind": _behind,
    "operators": _operators,
    "chakra's json": _chakra,
}


def targets() -> list[Target]:
    """A target for each folder of traces."""
    return [made().target(f"traces, {name}") for name, made in MADE.items()]
