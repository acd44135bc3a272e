"""What Kineto traces say of communications, and what they leave out: lists, groups, sizes, ranks, names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import cosim
from cosim.context import Context
from cosim.errors import Location, WorkloadError
from cosim.formats.pytorch.communication import from_arguments, known_kind
from cosim.formats.pytorch.mesh import mesh_of
from cosim.formats.pytorch.read import PyTorchWorkload
from tests.formats.pytorch.trace_files import Rank

HERE = Location("trace.json")


def write(
    folder: Path, listed: list[dict[str, Any]], rank: int = 0, world: int = 1, name: str = "", **info: Any
) -> Path:
    """A trace of one step with these communications, one after the other."""
    made = Rank(rank, world)
    made.op("ProfilerStep#1", 0, 100 * len(listed) + 100)
    for k, said in enumerate(listed):
        at = 100 * k
        made.op("record_param_comms", at + 10, at + 30)
        made.events[-1]["args"].update(
            {"Seq": k, "dtype": "Float", "Group size": world, "Process Group Name": "0", **said}
        )
        made.launch("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", at + 15, at + 40, at + 90, 20)
    trace = made.kineto()
    trace["distributedInfo"].update(info)
    folder.mkdir(exist_ok=True)
    path = folder / (name or f"rank{rank}.json")
    path.write_text(json.dumps(trace))
    return path


def shown(ranks: list[int]) -> str:
    """A list as Kineto writes it: the first 30."""
    return f"[{', '.join(map(str, ranks[:30]))}{', ...' if len(ranks) > 30 else ''}]"


def run(path: Path, ranks: int, **settings: Any) -> cosim.Run:
    """A run on a switch."""
    workload = {"kind": "pytorch", "kineto": str(path), **settings}
    fabric = {"kind": "switch", "endpoints": ranks, "rate": "100Gbps", "latency": "0ns"}
    return cosim.run({"topology": fabric, "network": "fair_share", "jobs": [{"workload": workload}]})


def all_reduce(elements: int, **said: Any) -> dict[str, Any]:
    return {"Collective name": "allreduce", "In msg nelems": elements, "Out msg nelems": elements, **said}


@pytest.mark.parametrize("world", [30, 31, 64])
def test_a_group_of_all_ranks_may_be_cut_short(tmp_path: Path, world: int) -> None:
    said = all_reduce(64_000, **{"Process Group Ranks": shown([*range(world)])})
    done = run(write(tmp_path, [said], world=world), world)
    # A ring's: each rank sends 2 (n - 1) / n of the buffer.
    assert done.summary.traffic.total_bytes == pytest.approx(2 * (world - 1) * 256_000, rel=1e-2)
    assert done.summary.doubts == ()


def test_ranks_of_a_group_are_those_of_the_traces_configuration(tmp_path: Path) -> None:
    odd = [0, *range(3, 80, 2)]
    said = all_reduce(
        1000, **{"Process Group Name": "7", "Process Group Ranks": shown(odd), "Group size": 40}
    )
    groups = [{"pg_name": "7", "pg_size": 40, "ranks": odd}]
    for rank in range(80):
        here = [said] if rank in odd else []
        write(tmp_path, here, rank, 80, pg_config=groups)
    (collective,) = run(tmp_path, 80).records.collectives
    assert [*collective.ranks] == odd


def test_a_group_that_is_cut_short_goes_on_as_it_begins(tmp_path: Path) -> None:
    ranks = [*range(0, 128, 2)]
    said = all_reduce(1000, **{"Process Group Ranks": shown(ranks), "Group size": 64})
    workload = PyTorchWorkload(kineto=str(write(tmp_path, [said], world=128))).build(Context(tmp_path))
    (operation,) = (op for op in workload.programs[0].operations if op.collective)
    assert workload.mesh.group(0, operation.axes) == tuple(ranks)
    assert any("goes on as it begins" in line for line in workload.report.assumed)


def all_to_all(sent: list[int], received: list[int]) -> dict[str, Any]:
    return {
        "Collective name": "all_to_allv",
        "In msg nelems": sum(sent),
        "Out msg nelems": sum(received),
        "In split size": shown(sent),
        "Out split size": shown(received),
    }


@pytest.mark.parametrize(
    "sent",
    [
        [[7, 7], [0, 0]],
        [[0, 0, 5], [4, 4, 4], [0, 0, 0]],
        [[2, 2, 2], [2, 2, 2], [2, 2, 2]],
        [[2, 2, 2], [3, 3, 3], [2, 2, 2]],
    ],
)
def test_each_rank_sends_what_it_says(tmp_path: Path, sent: list[list[int]]) -> None:
    world = len(sent)
    for rank in range(world):
        received = [parts[rank] for parts in sent]
        write(tmp_path, [all_to_all([1000 * n for n in sent[rank]], received)], rank, world)
    done = run(tmp_path, world)
    between = [sent[a][b] for a in range(world) for b in range(world) if a != b and sent[a][b]]
    assert done.summary.traffic.total_bytes == 4000 * sum(between)
    assert done.summary.num_messages == len(between)


def test_sizes_that_are_cut_short_are_refused_and_not_needed_for_measured_times(tmp_path: Path) -> None:
    ragged = [*range(1, 41)]
    for rank in range(40):
        write(tmp_path, [all_to_all(ragged, ragged)], rank, 40)
    with pytest.raises(WorkloadError, match="the first 30 sizes of 40") as caught:
        run(tmp_path, 40)
    assert "give `et:`" in str(caught.value)
    done = run(tmp_path, 40, collectives="measured")
    assert done.summary.jobs[0].iteration_mean_ps == 200 * 10**6


def test_even_sizes_are_known_however_short_their_list_is(tmp_path: Path) -> None:
    for rank in range(40):
        write(tmp_path, [all_to_all([100] * 40, [100] * 40)], rank, 40)
    assert run(tmp_path, 40).summary.traffic.total_bytes == 40 * 39 * 400


def test_measured_times_need_no_description(tmp_path: Path) -> None:
    listed = [
        {"Collective name": "gossip", "In msg nelems": 5},
        all_reduce(4, dtype="Nibble"),
        {"Collective name": "", "dtype": ""},
    ]
    path = write(tmp_path, listed)
    with pytest.raises(WorkloadError, match="'gossip' can't be simulated"):
        run(path, 2)
    assert run(path, 2, collectives="measured").summary.jobs[0].iteration_mean_ps == 400 * 10**6


@pytest.mark.parametrize("name", ["resnet50.json", "run-2-of-9.json", "step105_epoch3.json", "trace.json"])
def test_one_trace_is_rank_0_whatever_its_name(tmp_path: Path, name: str) -> None:
    path = write(tmp_path, [all_reduce(1000)], name=name)
    trace = json.loads(path.read_text())
    del trace["distributedInfo"]
    path.write_text(json.dumps(trace))
    assert run(path, 2).summary.jobs[0].num_ranks == 1


@pytest.mark.parametrize(
    ("names", "ranks"),
    [
        (["a100_r1.json", "a100_r0.json"], [1, 0]),
        (["rank1_of8.json", "rank0_of8.json"], [1, 0]),
        (["resnet50_a.json", "resnet50_b.json"], [0, 1]),
    ],
)
def test_ranks_of_several_traces_are_guessed_where_nothing_contradicts(
    tmp_path: Path, names: list[str], ranks: list[int]
) -> None:
    for name, rank in zip(names, ranks, strict=True):
        path = write(tmp_path, [all_to_all([0, 1000 * (1 - rank)], [0, 0])], rank, 2, name)
        trace = json.loads(path.read_text())
        del trace["distributedInfo"]
        path.write_text(json.dumps(trace))
    traffic = run(tmp_path, 2, groups={"0": [[0, 1]]}).summary.traffic
    assert (traffic.busiest_src, traffic.busiest_dst) == (0, 1)


def test_one_rank_stands_for_a_job_of_tensor_and_data_parallel_groups(tmp_path: Path) -> None:
    """Rank 5 of dp 4 x tp 2: its groups are every rank's, moved."""
    tp, dp = [4, 5], [1, 3, 5, 7]
    listed = [
        all_reduce(1000, **{"Process Group Name": "tp", "Process Group Ranks": str(tp), "Group size": 2}),
        all_reduce(9000, **{"Process Group Name": "dp", "Process Group Ranks": str(dp), "Group size": 4}),
    ]
    done = run(write(tmp_path, listed, 5, 8), 8)
    groups = {tuple(int(rank) for rank in one.ranks) for one in done.records.collectives}
    assert groups <= {(0, 1), (2, 3), (4, 5), (6, 7), (0, 2, 4, 6), (1, 3, 5, 7)}
    assert done.summary.traffic.total_bytes == pytest.approx(8 * 4000 + 2 * 2 * 3 * 36_000)


@pytest.mark.parametrize(
    ("groups", "world", "good"),
    [
        ([(0, 1), (0, 2, 4, 6)], 8, True),
        ([(0, 1, 4, 5)], 8, True),
        ([(2, 3), (0, 1, 2, 3)], 8, True),
        ([(1, 2)], 8, False),
        ([(0, 1, 3)], 8, False),
        ([(0, 1, 2), (0, 1)], 6, False),
    ],
)
def test_groups_that_are_axes_of_a_mesh(groups: list[tuple[int, ...]], world: int, good: bool) -> None:
    found = mesh_of(groups, world)
    assert (found is not None) == good
    if found is not None:
        mesh, axes = found
        assert mesh.world_size == world
        assert all(mesh.group(group[0], axes[group]) == group for group in groups)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *(
            (name, "all_reduce")
            for name in ("allreduce", "all_reduce", "allreduce_coalesced", "ncclAllReduce")
        ),
        *((name, "all_reduce") for name in ("AllReduceWithBias", "allreduce_sparse", "c10d::allreduce_")),
        *(
            (name, "all_gather")
            for name in ("_allgather_base", "all_gather_into_tensor", "allgather_coalesced")
        ),
        *(
            (name, "all_gather")
            for name in ("_all_gather_oop", "allgather_into_tensor_coalesced", "AllGather")
        ),
        *((name, "reduce_scatter") for name in ("_reduce_scatter_base", "reduce_scatter_tensor_coalesced")),
        *(
            (name, "all_to_all")
            for name in ("alltoall_base", "all_to_all_single", "ncclAllToAllv", "all_to_all")
        ),
        *((name, "broadcast") for name in ("_broadcast_oop", "Broadcast", "bcast", "broadcast_coalesced")),
        *((name, "reduce") for name in ("reduce", "_reduce_oop", "ncclReduce")),
        *((name, name) for name in ("gather", "scatter", "barrier", "send", "recv")),
        ("AllToAllPivot", "all_to_all"),
        ("recv_any_source", "recv"),
        ("gossip", ""),
    ],
)
def test_every_name_of_pytorch_and_rccl_is_known(name: str, kind: str) -> None:
    assert known_kind(name) == kind


@pytest.mark.parametrize(
    ("dtype", "width"),
    [
        ("Byte", 1), ("Char", 1), ("Bool", 1), ("Float8_e4m3fnuz", 1), ("Float8_e5m2fnuz", 1), ("Half", 2),
        ("Float8_e8m0fnu", 1), ("QInt8", 1), ("UInt16", 2), ("BFloat16", 2), ("Float", 4), ("UInt32", 4),
        ("ComplexHalf", 4), ("QInt32", 4), ("Double", 8), ("UInt64", 8), ("ComplexFloat", 8), ("Long", 8),
        ("ComplexDouble", 16), ("c10::BFloat16", 2), ("torch.float16", 2), ("unsigned char", 1),
    ],
)  # fmt: skip
def test_every_type_of_pytorch_has_its_width(dtype: str, width: int) -> None:
    comm = from_arguments({**all_reduce(10), "dtype": dtype}, HERE)
    assert comm is not None
    assert (comm.size_bytes, comm.problem) == (10 * width, "")


@pytest.mark.parametrize(
    ("name", "sizes", "wanted"),
    [
        # (in, out) elements of each rank of 3; bytes from rank to rank, root 0
        ("gather", [(10, 30), (10, 0), (10, 0)], {(1, 0): 40, (2, 0): 40}),
        ("scatter", [(30, 10), (0, 10), (0, 10)], {(0, 1): 40, (0, 2): 40}),
    ],
)
def test_what_goes_to_or_from_a_root_is_messages(
    tmp_path: Path, name: str, sizes: list[tuple[int, int]], wanted: dict[tuple[int, int], int]
) -> None:
    for rank, (given, got) in enumerate(sizes):
        said = {"Collective name": name, "In msg nelems": given, "Out msg nelems": got}
        write(tmp_path, [said], rank, 3)
    done = run(tmp_path, 3)
    matrix = done.traffic_matrix(over_time=False).size_bytes[0]
    assert {(a, b): int(matrix[a, b]) for a in range(3) for b in range(3) if matrix[a, b]} == wanted


def test_a_step_that_was_cut_off_is_not_the_last(tmp_path: Path) -> None:
    made = Rank(0)
    for number in (1, 2, 3):
        at = 1000 * number
        made.op(f"ProfilerStep#{number}", at, at + 900)
        for k in range(2 if number == 3 else 8):
            made.launch("gemm", at + 100 * k, at + 100 * k + 10, at + 100 * k + 90)
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(made.kineto()))
    done = run(path, 2)
    report = done.records.jobs[0].workload.report
    assert "step: ProfilerStep#2" in report.read
    assert any("ProfilerStep#3: cut off" in line for line in report.ignored)
    (doubt,) = run(path, 2, step=3).doubts
    assert "it has 2 works of the GPU, the others 8" in doubt.why
