"""SimAI's workload files: against what SimAI's loop does by hand, and the real files."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cosim
from cosim.context import HERE
from cosim.errors import CosimError, WorkloadError
from cosim.experiment.scenario import loads
from cosim.formats.simai.read import SimAIWorkload
from cosim.workload.program import OpKind
from tests.inputs import find, needs

US = 10**6
HEADER = "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 2 pp: 1 vpp: 1 ga: 1 all_gpus: 8"
LAYERS = """\
first -1 1000 ALLREDUCE 8192 2000 ALLREDUCE 8192 3000 REDUCESCATTER 16384 100
second -1 4000 ALLTOALL_EP 8192 5000 NONE 0 6000 ALLREDUCE_DP_EP 4096 0
"""


def write(folder: Path, header: str = HEADER, layers: str = LAYERS, count: int | None = None) -> Path:
    path = folder / "work.txt"
    path.write_text(f"{header}\n{len(layers.splitlines()) if count is None else count}\n{layers}")
    return path


def test_forward_then_back_with_weight_gradients_beside(tmp_path: Path) -> None:
    workload = SimAIWorkload(path=str(write(tmp_path))).build(HERE)
    assert dict(workload.mesh.axes) == {"pp": 1, "dp": 2, "ep": 2, "tp": 2}
    told = [
        (o.name, o.kind.value, o.collective, o.axes, o.deps, o.duration_ps, o.size_bytes)
        for o in workload.programs[0].operations
    ]
    assert told == [
        ("first 0 forward", "compute", "", (), (), US, 0),
        ("first 0 forward", "collective", "all_reduce", ("tp",), (0,), 0, 8192),
        ("second 1 forward", "compute", "", (), (1,), 4 * US, 0),
        ("second 1 forward", "collective", "all_to_all", ("ep",), (2,), 0, 8192),
        ("second 1 input gradient", "compute", "", (), (3,), 5 * US, 0),
        ("second 1 weight gradient", "compute", "", (), (4,), 6 * US, 0),
        ("second 1 weight gradient", "collective", "all_reduce", ("dp",), (5,), 0, 4096),
        ("first 0 input gradient", "compute", "", (), (5,), 2 * US, 0),
        ("first 0 input gradient", "collective", "all_reduce", ("tp",), (7,), 0, 8192),
        ("first 0 weight gradient", "compute", "", (), (8,), 3 * US, 0),
        ("first 0 weight gradient", "collective", "reduce_scatter", ("dp", "ep"), (9,), 0, 16384),
        ("first 0 update", "memory", "", (), (10,), 100_000, 0),
    ]


def test_a_gathered_size_is_what_each_rank_has_afterwards(tmp_path: Path) -> None:
    layers = "a -1 10 ALLGATHER 8192 10 REDUCESCATTER 8192 10 NONE 0 0\n"
    operations = SimAIWorkload(path=str(write(tmp_path, layers=layers))).build(HERE).programs[0].operations
    assert [(o.collective, o.size_bytes) for o in operations if o.kind is OpKind.COLLECTIVE] == [
        ("all_gather", 4096),
        ("reduce_scatter", 8192),
    ]


def test_checkpoints_compute_forward_again(tmp_path: Path) -> None:
    layers = "".join(f"l{k} -1 10 NONE 0 20 NONE 0 30 NONE 0 0\n" for k in range(4))
    header = f"{HEADER} checkpoints: 2 0 2 checkpoint_initiates: 2 3 1"
    operations = SimAIWorkload(path=str(write(tmp_path, header, layers))).build(HERE).programs[0].operations
    order = [o.name for o in operations if o.phase == "recomputation" or "input" in o.name]
    assert order == [
        "l2 2 again", "l3 3 again", "l3 3 input gradient", "l2 2 input gradient",
        "l0 0 again", "l1 1 again", "l1 1 input gradient", "l0 0 input gradient",
    ]  # fmt: skip


def test_groups_of_one_rank_do_not_communicate_and_are_told(tmp_path: Path) -> None:
    header = "HYBRID_TRANSFORMER model_parallel_NPU_group: 1 ep: 1 pp: 2 vpp: 4 ga: 8 pp_comm: 1024"
    workload = SimAIWorkload(path=str(write(tmp_path, header)), gpus=4).build(HERE)
    kinds = [o.collective for o in workload.programs[0].operations if o.kind is OpKind.COLLECTIVE]
    assert kinds == ["all_reduce", "reduce_scatter"]
    assert "1 all_to_all over ep (1 ranks): nobody to talk to" in workload.report.ignored
    assert "would add 3.1 %" in workload.report.assumed[0]


@pytest.mark.parametrize(
    ("header", "layers", "count", "message"),
    [
        ("MICRO all_gpus: 8", LAYERS, None, r"work.txt:1: the header begins with 'MICRO'"),
        (HEADER.replace("all_gpus: 8", ""), LAYERS, None, "give gpus"),
        (HEADER.replace("all_gpus: 8", "all_gpus: 6"), LAYERS, None, "6 GPUs are not a multiple"),
        (HEADER + " speed: 3", LAYERS, None, "the header says 'speed'"),
        (HEADER, LAYERS, 3, "line 2 says 3 layers, and 2 follow"),
        (HEADER, LAYERS.replace("4000", "fast"), None, r"work.txt:4: forward time is 'fast'"),
        (
            HEADER,
            LAYERS.replace("ALLTOALL_EP", "ALLTOSOME"),
            None,
            r"work.txt:4: forward collective 'ALLTOSOME'",
        ),
        (HEADER, LAYERS.replace(" 100\n", "\n"), None, r"work.txt:3: a layer has 12 entries, this one 11"),
        (HEADER + " checkpoints: 1 7", LAYERS, None, "checkpoint layer 7: there are layers 0 to 1"),
    ],
)
def test_mistakes_are_told_with_their_line(
    tmp_path: Path, header: str, layers: str, count: int | None, message: str
) -> None:
    with pytest.raises(WorkloadError, match=message):
        SimAIWorkload(path=str(write(tmp_path, header, layers, count))).build(HERE)


@given(st.data())
def test_any_damage_is_an_error_of_ours_or_none(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    text = list(f"{HEADER}\n2\n{LAYERS}")
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(text) - 1))
        text[at] = data.draw(st.sampled_from(["", " ", "\n", "9", "-", "x", ":", "\t", "_EP"]))
    path = tmp_path_factory.getbasetemp() / "damaged.txt"
    path.write_text("".join(text))
    try:
        workload = SimAIWorkload(path=str(path)).build(HERE)
    except CosimError:
        return
    assert workload.world_size == len(workload.program_of)


REAL = {
    "G13B-M1-C01_GPT13B_megatron_tp8_pp1_mbs1_A100.txt": 16,
    "L7B-D1-C02_Llama7B_deepspeed_zero3_A100.txt": 8,
    "microAllReduce.txt": None,
    "workload_analytical.txt": None,
}


@needs("simai")
@pytest.mark.parametrize("name", sorted(REAL))
def test_real_files_are_read_whole(name: str) -> None:
    workload = SimAIWorkload(path=str(find("simai") / name), gpus=REAL[name]).build(HERE)
    lines = (find("simai") / name).read_text().splitlines()[2:]
    computing = sum(int(line.split()[c]) for line in lines if line.strip() for c in (2, 5, 8))
    found = sum(o.duration_ps for o in workload.programs[0].operations if o.kind is OpKind.COMPUTE)
    assert found == computing * 1000
    assert workload.report.read[0].startswith(f"{len([x for x in lines if x.strip()])} layers")


@needs("simai")
@pytest.mark.slow
def test_the_moe_on_9216_gpus_gives_an_iteration_with_16_ranks_simulated() -> None:
    run = cosim.run(
        loads(
            f"""
topology:
  kind: leaf_spine
  leaves: 1
  spines: 1
  endpoints_per_leaf: 9216
  latency: 500ns
  hosts: {{gpus: 8, nvlink_rate: 2.4Tbps, nvlink_latency: 300ns, nics: 8, nic_rate: 200Gbps}}
network: fair_share
jobs: [{{name: moe, workload: {{kind: simai, path: {find("simai/workload_analytical.txt")}}}}}]
"""
        )
    )
    job = run.summary.jobs[0]
    assert "16 of 9216 ranks are simulated, each standing for 576" in job.folding[0]
    assert job.num_ranks == 9216
    assert job.compute.share + job.exposed.share == pytest.approx(1, abs=0.001)
    # An all-to-all over 16 experts' ranks on four hosts: 12/16 of the bytes leave over the NIC.
    exchange = next(c for c in run.summary.collectives if c.collective == "all_to_all" and c.group_size == 16)
    assert exchange.mean_ps == pytest.approx(100663296 * 12 / 16 * 8 / 200e9 * 1e12, rel=0.1)
