import json
from pathlib import Path

import pytest

from cosim.context import Context
from cosim.errors import WorkloadError
from cosim.formats.chakra.read import ChakraWorkload
from cosim.workload.program import Operation, OpKind, Peer, Workload
from tests.formats.chakra.trace_files import coll, node, recv, send, write_ranks


def build(folder: Path, *ranks: list, **settings: object) -> Workload:  # type: ignore[type-arg]
    write_ranks(folder, *ranks)
    return ChakraWorkload.model_validate({"path": ".", **settings}).build(Context(folder))


def only(workload: Workload, rank: int = 0) -> tuple[Operation, ...]:
    return workload.program(rank).operations


def test_durations_are_microseconds_and_zero_is_one_nanosecond(tmp_path: Path) -> None:
    workload = build(tmp_path, [node(0, "COMP", us=7), node(1, "COMP", deps=[0])])
    assert [op.duration_ps for op in only(workload)] == [7_000_000, 1_000]
    assert "1 ns for a duration of 0, as ASTRA-sim" in workload.report.assumed


def test_streams_are_those_of_astra_sims_hardware_resource(tmp_path: Path) -> None:
    nodes = [
        node(0, "COMP", us=1),
        node(1, "COMP", us=1, is_cpu_op=True),
        coll(2),
        send(3, dst=1),
        recv(4, src=1),
        node(5, "MEM_LOAD", tensor_size=10),
    ]
    other = [coll(0), recv(1, src=0), send(2, dst=0)]
    workload = build(tmp_path, nodes, other, memory={"latency": "5ns", "rate": "1GB/s"})
    assert [op.stream for op in only(workload)] == ["compute", "cpu", "comm", "comm", "", "comm"]
    assert [op.kind for op in only(workload)] == [
        OpKind.COMPUTE,
        OpKind.COMPUTE,
        OpKind.COLLECTIVE,
        OpKind.SEND,
        OpKind.RECV,
        OpKind.MEMORY,
    ]
    assert only(workload)[3].peer == Peer(rank=1)


def test_operations_are_numbered_by_node_id_whatever_the_order_in_the_file(tmp_path: Path) -> None:
    nodes = [node(9, "COMP", us=9, deps=[2]), node(2, "COMP", us=2, deps=[5]), node(5, "COMP", us=5)]
    operations = only(build(tmp_path, nodes))
    assert [op.duration_ps // 1_000_000 for op in operations] == [2, 5, 9]
    assert [op.deps for op in operations] == [(1,), (), (0,)]


def test_control_dependencies_count_as_in_feeder_v3_unless_told_otherwise(tmp_path: Path) -> None:
    # ASTRA-sim's binary takes 12 us for this, 7 us without the control dependency.
    nodes = [node(0, "COMP", us=5, is_cpu_op=True), node(1, "COMP", us=7, ctrl=[0])]
    assert only(build(tmp_path / "all", nodes))[1].deps == (0,)
    data_only = build(tmp_path / "data", nodes, dependencies="data")
    assert only(data_only)[1].deps == ()
    assert "control dependency (dependencies: data)" in data_only.report.ignored


def test_identical_ranks_share_one_program(tmp_path: Path) -> None:
    workload = build(tmp_path, *[[coll(0)]] * 6)
    assert len(workload.programs) == 1
    assert workload.program_of.tolist() == [0] * 6
    assert workload.report.read[0] == "6 x COMM_COLL_NODE"


def test_groups_come_from_the_file_and_from_pytorchs_metadata(tmp_path: Path) -> None:
    (tmp_path / "groups.json").write_text(json.dumps({"1": [1, 0], "2": [2, 3]}), encoding="utf-8")
    metadata = '[\'[{"pg_name": "7", "ranks": [0, 2]}, {"pg_name": "8", "ranks": []}]\']'
    ranks = [
        [node(0, "METADATA", values=metadata), coll(1, pg_name=str(1 + r // 2)), coll(2, pg_name="0")]
        for r in range(4)
    ]
    for rank in (0, 2):
        ranks[rank].append(coll(3, pg_name="7"))
    for rank in range(4):
        ranks[rank].append(coll(4, pg_name="8"))
    workload = build(tmp_path, *ranks, comm_groups="groups.json")
    assert [op.ranks for op in only(workload, 0)] == [None, (1, 0), None, (0, 2), None]
    assert only(workload, 3)[1].ranks == (2, 3)
    assert only(workload, 0)[0].stream == ""
    assert only(workload, 0)[0].duration_ps == 0


def test_involved_dims_become_mesh_axes_with_dimension_0_fastest(tmp_path: Path) -> None:
    flags = [[True, False], [False, True], [True, True], [True, True, True, True]]
    nodes = [coll(i, flags=flag) for i, flag in enumerate(flags)]
    workload = build(tmp_path, *[nodes] * 6, dims=[2, 3])
    assert [op.axes for op in only(workload)] == [("dim0",), ("dim1",), (), ()]
    assert workload.mesh.group(3, ("dim0",)) == (2, 3)
    assert workload.mesh.group(3, ("dim1",)) == (1, 3, 5)


def test_memory_takes_latency_and_whole_nanoseconds_of_transfer(tmp_path: Path) -> None:
    # ASTRA-sim: remote-mem-latency 100 + uint64(1001 / 3.0) = 433 ns
    nodes = [node(0, "MEM_STORE", tensor_size=1001)]
    workload = build(tmp_path, nodes, memory={"latency": "100ns", "rate": "3GB/s"})
    assert only(workload)[0].duration_ps == 433_000
    (store,) = only(ChakraWorkload(path=".").build(Context(tmp_path)))
    assert (store.access, store.size_bytes, store.duration_ps) == ("store", 1001, 0)  # the scenario's memory


def test_sizes_that_share_a_tag_are_told_apart(tmp_path: Path) -> None:
    sender = [send(0, 1, size=100), send(1, 1, size=200), send(2, 1, size=5, tag=4)]
    receiver = [recv(0, 0, size=200), recv(1, 0, size=100), recv(2, 0, size=5, tag=4)]
    workload = build(tmp_path, sender, receiver)
    tag_of = {op.size_bytes: op.tag for op in only(workload, 0)}
    assert tag_of == {op.size_bytes: op.tag for op in only(workload, 1)}
    assert len(set(tag_of.values())) == 3
    assert tag_of[5] == 4


def test_host_side_calls_are_replayed_and_reported(tmp_path: Path) -> None:
    workload = build(tmp_path, [node(0, "COMM_COLL", us=9, is_cpu_op=True)])
    assert only(workload)[0].stream == "cpu"
    assert only(workload)[0].duration_ps == 9_000_000
    assert any("a call on the host" in line for line in workload.report.assumed)


def test_one_trace_stands_for_all_ranks_when_told_so(tmp_path: Path) -> None:
    write_ranks(tmp_path, [coll(0)])
    with pytest.raises(WorkloadError, match=r"how many are they.*\n.*world_size: 8"):
        ChakraWorkload(path=".").build(Context(tmp_path))
    workload = ChakraWorkload(path="job.0.et", world_size=5).build(Context(tmp_path))
    assert (workload.world_size, len(workload.programs)) == (5, 1)
    assert "job.0.et runs on all 5 ranks" in workload.report.assumed


def test_unused_attributes_are_reported(tmp_path: Path) -> None:
    workload = build(tmp_path, [node(0, "COMP", us=1, num_ops=5), coll(1, comm_priority=3)] * 1, world_size=1)
    assert workload.report.ignored == ("attribute num_ops", "attribute comm_priority")


BAD = {
    "node id 3 is there twice": [node(3, "COMP"), node(3, "COMP")],
    "data dependency on node 9, which isn't in the file": [node(0, "COMP", deps=[9])],
    "node 1 'comp_1' -> node 2 'comp_2' -> node 1 'comp_1'": [
        node(1, "COMP", deps=[2]),
        node(2, "COMP", deps=[1]),
    ],
    "node 4 'comp_4' -> node 4 'comp_4'": [node(4, "COMP", deps=[4])],
    "sends for rank 1, but stands in the trace of rank 0": [
        node(0, "COMM_SEND", comm_src=1, comm_dst=0, comm_size=1, comm_tag=0)
    ],
    "comm_dst is 7": [send(0, 7)],
    "comm_dst is 0": [send(0, 0)],
    "attribute 'comm_size' is missing": [node(0, "COMM_COLL", comm_type=0)],
    "attribute 'comm_type' is missing": [node(0, "COMM_COLL", comm_size=0)],
    "comm_type 3 (GATHER) can't be simulated": [coll(0, "GATHER")],
    "comm_type 77 (unknown)": [node(0, "COMM_COLL", comm_type=77, comm_size=1)],
    "comm_size is -5": [coll(0, size=-5)],
    "attribute 'comm_size' is string_val; it should be an integer": [
        node(0, "COMM_COLL", comm_type=0, comm_size="1 MB")
    ],
    "process group '5' is not known": [coll(0, pg_name="5")],
    "involved_dim [True, False] leaves dimensions out": [coll(0, flags=[True, False])],
    "a communication with comm_size on the CPU": [coll(0, is_cpu_op=True)],
    "process groups that aren't JSON": [node(0, "METADATA", values="['[{\"pg_name\": ]']")],
    "is above 53 days": [node(0, "COMP", us=2**63)],
}


@pytest.mark.parametrize("message", BAD)
def test_bad_nodes_are_refused_with_file_and_node(tmp_path: Path, message: str) -> None:
    with pytest.raises(WorkloadError) as caught:
        build(tmp_path, BAD[message], [node(0, "COMP")])
    assert message in str(caught.value)
    assert "job.0.et: node" in str(caught.value)


def test_rendezvous_is_passed_on_and_reported(tmp_path: Path) -> None:
    workload = build(tmp_path, [send(0, 1)], [recv(0, 0)], rendezvous=True)
    assert workload.rendezvous
    assert workload.report.assumed[-1].startswith("a request of 8 KiB")
    assert not ChakraWorkload(path=".").build(Context(tmp_path)).rendezvous


def test_unknown_node_types_are_refused(tmp_path: Path) -> None:
    strange = node(0, "COMP")
    strange.type = 42  # type: ignore[assignment]
    with pytest.raises(WorkloadError, match="unknown node type 42"):
        build(tmp_path, [strange])


def test_a_missing_rank_is_named(tmp_path: Path) -> None:
    write_ranks(tmp_path, *[[node(0, "COMP")]] * 4)
    (tmp_path / "job.2.et").unlink()
    with pytest.raises(WorkloadError, match="up to rank 3, but none for rank 2"):
        ChakraWorkload(path="job").build(Context(tmp_path))


def test_a_folder_of_two_traces_needs_a_prefix(tmp_path: Path) -> None:
    for prefix in ("a", "b"):
        write_ranks(tmp_path, [node(0, "COMP")], prefix=prefix)
    with pytest.raises(WorkloadError, match="several traces: a, b"):
        ChakraWorkload(path=".").build(Context(tmp_path))
    assert ChakraWorkload(path="b").build(Context(tmp_path)).name == "b"
    with pytest.raises(WorkloadError, match=r"no file .*c\.0\.et\n.*there are: a, b"):
        ChakraWorkload(path="c").build(Context(tmp_path))


def test_groups_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    for groups, message in (
        ({"1": [1]}, "without this rank 0"),
        ({"1": [0, 9]}, "has rank 9 of 2 ranks"),
        ({"1": [0, 0]}, "names a rank twice"),
    ):
        with pytest.raises(WorkloadError, match=message):
            build(tmp_path, [coll(0, pg_name="1")], [node(0, "COMP")], comm_groups=groups)
    for text, where in (("{", r"bad\.json:1"), ('{"1": ' + "[" * 100_000, r"bad\.json")):
        (tmp_path / "bad.json").write_text(text, encoding="utf-8")
        with pytest.raises(WorkloadError, match=f"{where}: not JSON"):
            build(tmp_path, [node(0, "COMP")], comm_groups="bad.json")
    with pytest.raises(WorkloadError, match=r"gone\.json: can't be read"):
        build(tmp_path, [node(0, "COMP")], comm_groups="gone.json")


def test_world_size_may_take_the_first_traces_but_not_invent_more(tmp_path: Path) -> None:
    workload = build(tmp_path, *[[node(0, "COMP")]] * 4, world_size=2)
    assert workload.world_size == 2
    assert workload.report.ignored == ("traces of ranks 2 to 3 (world_size: 2)",)
    with pytest.raises(WorkloadError, match="there are 4 traces, but world_size is 8"):
        ChakraWorkload(path=".", world_size=8).build(Context(tmp_path))
    with pytest.raises(WorkloadError, match=r"dims \[2, 3\] are 6 ranks, but there are 4 traces"):
        ChakraWorkload(path=".", dims=[2, 3]).build(Context(tmp_path))


def test_a_message_can_not_be_every_ranks(tmp_path: Path) -> None:
    write_ranks(tmp_path, [send(0, 1)])
    with pytest.raises(WorkloadError, match="a COMM_SEND_NODE can't be every rank's"):
        ChakraWorkload(path=".", world_size=2).build(Context(tmp_path))


def test_settings_that_the_traces_have_no_use_for_are_named(tmp_path: Path) -> None:
    write_ranks(tmp_path, [node(0, "COMP", us=1)], [node(0, "COMP", us=1)])
    given = {
        "comm_groups": {"1": [0, 1]},
        "dims": [2],
        "memory": {"latency": "1us", "rate": "1GB/s"},
        "rendezvous": True,
        "dependencies": "data",
    }
    spec = ChakraWorkload.model_validate({"path": ".", **given})
    assert {name for name, _ in spec.idle_in(spec.build(Context(tmp_path)))} == set(given)


def test_settings_that_the_traces_use_are_not_named(tmp_path: Path) -> None:
    write_ranks(tmp_path, [coll(0, pg_name="1"), send(1, 1, ctrl=[0])], [coll(0, pg_name="1"), recv(1, 0)])
    given = {"comm_groups": {"1": [0, 1]}, "rendezvous": True, "dependencies": "data"}
    spec = ChakraWorkload.model_validate({"path": ".", **given})
    assert spec.idle_in(spec.build(Context(tmp_path))) == []
