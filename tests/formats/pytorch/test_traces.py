"""PyTorch's traces in: what was measured comes out again, and what waits for what is kept."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any

import pytest

from cosim.context import Context
from cosim.errors import CosimError, MismatchError, WorkloadError
from cosim.experiment.run import run
from cosim.experiment.scenario import loads
from cosim.experiment.simulate import Run
from cosim.formats.pytorch.read import PyTorchWorkload
from cosim.units import PS_PER_US
from cosim.workload.check import check
from cosim.workload.program import OpKind, Workload
from tests.formats.pytorch.trace_files import Rank, data_parallel


def _replay(folder: Path, ranks: int, *, latency: str = "0s", **settings: Any) -> Run:
    given = {"et": "et", "kineto": "kineto", **settings}
    listed = ", ".join(f"{name}: {value}" for name, value in given.items())
    text = f"""
topology: {{kind: switch, endpoints: {ranks}, rate: 100GB/s, latency: {latency}}}
network: fair_share
jobs:
  - workload: {{kind: pytorch, {listed}}}
"""
    return run(loads(text, base=folder))


def _ends_us(done: Run) -> list[float]:
    ops = done.records.ops
    return [ops.end_ps[ops.rank == rank].max() / PS_PER_US for rank in sorted(set(ops.rank.tolist()))]


def test_a_step_replayed_lasts_as_long_as_it_was_measured(tmp_path: Path) -> None:
    for rank in range(4):
        data_parallel(rank, 4, late=20 * rank).write(tmp_path)
    done = _replay(tmp_path, 4, collectives="measured")
    # The last rank waits for nobody: 60 + 330 + 140 for the all-reduce, then 100; all end at once.
    assert _ends_us(done) == pytest.approx([630.0] * 4, abs=1e-3)
    report = done.records.jobs[0].workload.report
    assert "all_reduce over 4 ranks" in report.read
    assert "4 x time in which autograd's thread works for the main one" in report.read
    assert any("process group is all ranks" in line for line in report.assumed)


def test_what_waits_for_a_collective_waits_longer_on_a_slower_network(tmp_path: Path) -> None:
    for rank in range(2):
        data_parallel(rank, 2, late=60 * rank).write(tmp_path)
    fast, slow = (_replay(tmp_path, 2, latency=latency) for latency in ("1ms", "2ms"))
    took = [
        done.records.collectives[0].end_ps - done.records.collectives[0].ready_ps for done in (fast, slow)
    ]
    more = (took[1] - took[0]) / PS_PER_US
    assert more > 1000
    assert [b - a for a, b in zip(_ends_us(fast), _ends_us(slow), strict=True)] == pytest.approx([more, more])


def test_ranks_that_begin_together_wait_for_nobody(tmp_path: Path) -> None:
    for rank in range(2):
        data_parallel(rank, 2, late=60 * rank).write(tmp_path)
    assert _ends_us(_replay(tmp_path, 2, collectives="measured", start="together")) == pytest.approx(
        [570.0, 570.0], abs=1e-3
    )


def test_clocks_apart_are_set_by_the_ends_of_collectives(tmp_path: Path) -> None:
    for rank in range(2):
        made = data_parallel(rank, 2, late=60 * rank)
        for event in made.events:
            event["ts"] += 5_000_000 * rank  # another host, five seconds ahead
        made.write(tmp_path)
    done = _replay(tmp_path, 2, collectives="measured")
    assert _ends_us(done) == pytest.approx([630.0, 630.0], abs=1e-3)
    assert any("clock set back by 5 s" in line for line in done.records.jobs[0].workload.report.assumed)


def test_a_thread_that_waits_for_the_gpu_waits_for_that_stream(tmp_path: Path) -> None:
    made = Rank(0)
    made.op("ProfilerStep#1", 0, 300)
    made.launch("long", 10, 20, 250, stream=9)
    made.launch("short", 30, 40, 60, stream=7)
    made.cuda("cudaStreamSynchronize", 50, 70)
    made.op("aten::relu", 80, 90)
    made.cuda("cudaDeviceSynchronize", 100, 255)
    made.write(tmp_path)
    operations = _read(tmp_path).programs[0].operations
    names = {op.name: number for number, op in enumerate(operations)}
    stream, device = operations[names["cudaStreamSynchronize"]], operations[names["cudaDeviceSynchronize"]]
    assert names["short"] in stream.deps
    assert names["long"] not in stream.deps
    assert names["long"] in device.deps
    assert stream.duration_ps == 10 * PS_PER_US
    assert device.duration_ps == 5 * PS_PER_US
    assert _ends_us(_replay(tmp_path, 1)) == [300.0]


def test_host_time_between_operators_is_kept_and_work_without_launch_is_told(tmp_path: Path) -> None:
    made = Rank(0)
    made.op("ProfilerStep#1", 0, 1000)
    made.op("aten::add", 400, 410)
    made.launch("add", 404, 409, 415)
    made.kernel("launched by nobody", 500, 509, 7, 77)
    made.write(tmp_path)
    workload = _read(tmp_path)
    host = sum(op.duration_ps for op in workload.programs[0].operations if op.stream == "cpu")
    assert host == 1000 * PS_PER_US
    assert any("GPU work without its launch" in line for line in workload.report.assumed)


def test_newer_traces_say_all_in_kineto_and_which_stream_waits_for_which(tmp_path: Path) -> None:
    for rank in range(2):
        made = data_parallel(rank, 2)
        for event in made.events:
            if event["name"] == "record_param_comms":
                waits = event["dur"] == 4
                event["args"].update(
                    {"Collective name": "wait" if waits else "allreduce", "Seq": 12, "dtype": "Float",
                     "In msg nelems": 250_000, "Out msg nelems": 250_000, "Group size": 2,
                     "Process Group Name": "0", "Process Group Ranks": "[0, 1]"}
                )  # fmt: skip
        made.write(tmp_path)
    workload = PyTorchWorkload(kineto="kineto").build(Context(tmp_path))
    check(workload)
    collective = [op for op in workload.programs[1].operations if op.kind is OpKind.COLLECTIVE]
    assert [(op.collective, op.size_bytes) for op in collective] == [("all_reduce", 1_000_000)]
    assert not any("all ranks" in line for line in workload.report.assumed)


def test_messages_between_stages_are_sent_to_whom_the_trace_says(tmp_path: Path) -> None:
    for rank in range(2):
        made = Rank(rank, 2)
        made.op("ProfilerStep#1", 0, 200)
        made.collective("send", 1000, 50, 70, 90, 1)
        name, way = ("send", "Dst Rank") if rank == 0 else ("recv", "Src Rank")
        record = next(event for event in made.events if event["name"] == "record_param_comms")
        record["args"].update(
            {"Collective name": name, "dtype": "BFloat16", "In msg nelems": 1000, "Out msg nelems": 1000,
             "Group size": 2, "Process Group Ranks": [0, 1], way: 1 - rank}
        )  # fmt: skip
        made.write(tmp_path)
    workload = PyTorchWorkload(kineto="kineto").build(Context(tmp_path))
    check(workload)
    sent, received = (
        [(op.kind, op.size_bytes, op.peer and op.peer.rank) for op in program.operations if op.size_bytes]
        for program in workload.programs
    )
    assert (sent, received) == ([(OpKind.SEND, 2000, 1)], [(OpKind.RECV, 2000, 0)])


def test_a_stream_follows_the_event_that_newer_traces_name(tmp_path: Path) -> None:
    made = Rank(0)
    made.op("ProfilerStep#1", 0, 300)
    made.launch("waited for", 10, 20, 100, stream=9)
    made.launch("not waited for", 20, 30, 90, stream=11)
    record = made.cuda("cudaEventRecord", 30, 31)
    wait = made.cuda("cudaStreamWaitEvent", 40, 41)
    made.events.append(
        {"ph": "X", "cat": "cuda_sync", "name": "Stream Wait Event", "ts": 1_000_040, "dur": 0, "pid": 0,
         "tid": 7, "args": {"stream": 7, "wait_on_stream": 9,
                            "wait_on_cuda_event_record_corr_id": record, "correlation": wait}}
    )  # fmt: skip
    made.launch("waits", 50, 101, 120, stream=7)
    made.write(tmp_path)
    operations = _read(tmp_path).programs[0].operations
    names = {op.name: number for number, op in enumerate(operations)}
    waits = operations[names["waits"]]
    assert names["waited for"] in waits.deps
    assert names["not waited for"] not in waits.deps


def test_uneven_parts_of_an_all_to_all_are_sent_as_they_are(tmp_path: Path) -> None:
    splits = {0: [10, 30], 1: [20, 20]}
    for rank in range(2):
        made = Rank(rank, 2)
        made.op("ProfilerStep#1", 0, 200)
        made.collective("all_to_allv", 40, 50, 70, 90, 1, splits=splits[rank])
        made.write(tmp_path)
    workload = _read(tmp_path)
    check(workload)
    sent = {
        rank: [op.size_bytes for op in workload.programs[rank].operations if op.kind is OpKind.SEND]
        for rank in range(2)
    }
    assert sent == {0: [120], 1: [80]}


def test_the_step_is_the_last_one_or_the_one_asked_for(tmp_path: Path) -> None:
    made = Rank(0)
    for step, (begin, end) in enumerate([(0, 100), (100, 250), (250, 450)], 1):
        made.op(f"ProfilerStep#{step}", begin, end)
        made.launch(f"kernel {step}", begin + 10, begin + 20, begin + 30)
    made.write(tmp_path)
    assert _ends_us(_replay(tmp_path, 1)) == [200.0]
    assert _ends_us(_replay(tmp_path, 1, step=2)) == [150.0]
    assert _ends_us(_replay(tmp_path, 1, step="all")) == [450.0]
    with pytest.raises(WorkloadError, match=r"no ProfilerStep#7; there are: 1, 2, 3"):
        _read(tmp_path, step=7)


def test_an_archive_is_read_as_a_folder_is(tmp_path: Path) -> None:
    for rank in range(2):
        data_parallel(rank, 2).write(tmp_path)
    for name in ("et", "kineto"):
        with tarfile.open(tmp_path / f"{name}.tar.gz", "w:gz") as archive:
            archive.add(tmp_path / name, arcname=name)
    folder, packed = _read(tmp_path), _read(tmp_path, et="et.tar.gz", kineto="kineto.tar.gz")
    pattern = _read(tmp_path, et="et/rank*.json", kineto="kineto/*.gz")
    for program, other, third in zip(folder.programs, packed.programs, pattern.programs, strict=True):
        assert program.operations == other.operations == third.operations


def test_one_rank_stands_for_all_and_that_is_told(tmp_path: Path) -> None:
    data_parallel(0, 8).write(tmp_path)
    workload = _read(tmp_path)
    assert workload.world_size == 8
    assert len(workload.programs) == 1
    assert "the trace of one rank runs on all 8 ranks" in workload.report.assumed


def test_groups_are_those_that_are_said_and_each_has_its_own_collective(tmp_path: Path) -> None:
    for rank in range(4):
        made = data_parallel(rank, 4)
        for node in made.nodes:
            if node["name"] == "record_param_comms" and len(node["inputs"]) > 6:
                node["inputs"][2] = ["tp", "tensor parallel"]
        made.write(tmp_path)
    workload = _read(tmp_path, groups={"tp": [[0, 1], [2, 3]]})
    check(workload)
    groups = [op.ranks for program in workload.programs for op in program.operations if op.collective]
    assert groups == [(0, 1), (0, 1), (2, 3), (2, 3)]
    with pytest.raises(WorkloadError, match=r"process group 'tp' is \[0, 1, 9\]; this is rank 0 of 4"):
        _read(tmp_path, groups={"tp": [[0, 1, 9]]})


def test_two_traces_of_a_rank_are_refused(tmp_path: Path) -> None:
    data_parallel(0, 2).write(tmp_path)
    (tmp_path / "et" / "again_rank0.json").write_bytes((tmp_path / "et" / "rank0.json").read_bytes())
    with pytest.raises(WorkloadError, match="is of rank 0, as"):
        _read(tmp_path)


def test_a_number_beyond_all_numbers_is_refused(tmp_path: Path) -> None:
    (tmp_path / "kineto").mkdir()
    (tmp_path / "kineto" / "rank0.json").write_text('{"traceEvents": [{"dur": 1e99999999999999999999}]}')
    with pytest.raises(WorkloadError, match=r"rank0\.json.*traceEvents\[0\] has a number with too large an"):
        PyTorchWorkload(kineto="kineto").build(Context(tmp_path))


def test_a_job_of_more_ranks_than_any_cluster_has_is_refused(tmp_path: Path) -> None:
    data_parallel(0, 2**31).write(tmp_path)
    with pytest.raises(WorkloadError, match="the job has 2147483648 ranks"):
        _read(tmp_path)


def test_ranks_that_differ_are_refused_with_both_places(tmp_path: Path) -> None:
    data_parallel(0, 2).write(tmp_path)
    other = data_parallel(1, 2)
    comm = next(node for node in other.nodes if node["name"] == "record_param_comms")
    comm["inputs"][0][3] = 5
    other.write(tmp_path)
    with pytest.raises(
        MismatchError, match=r"rank1.json: node \d+ 'record_param_comms'.*rank 0 has all_reduce"
    ):
        _read(tmp_path)


@pytest.mark.parametrize(
    ("where", "damage", "said"),
    [
        ("kineto", {"ts": "soon"}, r"traceEvents\[2\] 'aten::mm': ts is 'soon'"),
        ("kineto", {"dur": -4}, r"traceEvents\[2\] 'aten::mm': dur is '-4'"),
        ("kineto", {"args": 3}, r"traceEvents\[2\] 'aten::mm': args are '3'"),
        ("et", {"inputs": 3}, r"node 15 'record_param_comms': inputs are 3"),
        ("et", {"inputs": [1, 2]}, r"node 15 'record_param_comms': names no collective"),
        ("et", {"inputs": [[1, 2, 0, 4, 4, "cuda:0"], 1, 2, 0, "gossip"]}, r"'gossip' can't be simulated"),
        ("et", {"id": "x"}, r"nodes\[4\]: id is 'x'"),
    ],
)
def test_damage_is_named_with_file_and_place(
    tmp_path: Path, where: str, damage: dict[str, Any], said: str
) -> None:
    made = data_parallel(0, 1)
    if where == "kineto":
        made.events[1].update(damage)
    else:
        next(node for node in made.nodes if node["name"] == "record_param_comms").update(damage)
    made.write(tmp_path)
    with pytest.raises(WorkloadError, match=said) as caught:
        _read(tmp_path)
    assert f"{where}/rank0.json" in str(caught.value)


def test_settings_that_cannot_be_are_refused(tmp_path: Path) -> None:
    topology = "topology: {kind: switch, endpoints: 2, rate: 1GB/s, latency: 0s}"
    text = f"{topology}\njobs: [{{workload: {{kind: pytorch, et: x}}}}]"
    with pytest.raises(CosimError, match="an ET has no times"):
        loads(text, base=tmp_path)
    with pytest.raises(WorkloadError, match="there is no trace here"):
        PyTorchWorkload(kineto="nowhere").build(Context(tmp_path))
    data_parallel(0, 1).write(tmp_path)
    with pytest.raises(WorkloadError, match="is a Kineto trace, not an ET"):
        PyTorchWorkload(et="kineto", kineto="kineto").build(Context(tmp_path))
    with pytest.raises(WorkloadError, match=r"PyTorch before 2\.2 writes that only to the ET"):
        PyTorchWorkload(kineto="kineto").build(Context(tmp_path))


def _read(folder: Path, **settings: Any) -> Workload:
    return PyTorchWorkload(**{"et": "et", "kineto": "kineto", **settings}).build(Context(folder))
