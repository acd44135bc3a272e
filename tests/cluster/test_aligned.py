"""Groups of a job whole within scale-up domains: counted by hand, on racks that they don't fill."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cosim
from cosim.cluster.aligned import Aligned, units
from cosim.cluster.contract import Wanted
from cosim.errors import WorkloadError
from cosim.workload.program import DeviceMesh


def wanted(mesh: dict[str, int], domains: list[int], taken: tuple[int, ...] = ()) -> Wanted:
    """Domains of so many endpoints each."""
    label = np.repeat(np.arange(len(domains)), domains)
    free = np.setdiff1d(np.arange(len(label)), taken).astype(np.int32)
    made = DeviceMesh(mesh)
    return Wanted(made.world_size, free, len(label), mesh=made, scale_up=label.astype(np.int64))


def test_what_a_rack_has_left_over_stays_free() -> None:
    asked = wanted({"pp": 3, "ep": 4}, [6, 6, 6])
    assert Aligned().choose(asked).tolist() == [0, 1, 2, 3, 6, 7, 8, 9, 12, 13, 14, 15]
    assert Aligned(axes=("tp", "ep")).choose(asked).tolist() == Aligned().choose(asked).tolist()


def test_where_packed_keeps_groups_whole_it_is_packed() -> None:
    asked = wanted({"dp": 3, "tp": 2}, [4, 4])
    assert Aligned().choose(asked).tolist() == [0, 1, 2, 3, 4, 5]


def test_ranks_of_a_group_that_are_not_in_a_row_come_together() -> None:
    placed = Aligned(axes=("pp",)).choose(wanted({"pp": 2, "dp": 2}, [3, 3]))
    assert placed.tolist() == [0, 3, 1, 4]  # ranks 0 and 2 are a pipeline, and 1 and 3


def test_what_others_have_is_left_to_them() -> None:
    assert Aligned().choose(wanted({"dp": 2, "tp": 2}, [4, 4], taken=(1,))).tolist() == [0, 2, 4, 5]


@pytest.mark.parametrize(
    ("axes", "says"),
    [
        (("tp", "ep"), "2 groups of 4 ranks.*which have 3, 3, 3 free endpoints"),
        (("cp",), "the job has none of them.*it has dp 2, tp 4"),
    ],
)
def test_groups_that_do_not_fit_are_refused_with_the_room_there_is(axes: tuple[str, ...], says: str) -> None:
    asked = wanted({"dp": 2, "tp": 4}, [3, 3, 3])
    with pytest.raises(WorkloadError, match=says):
        Aligned(axes=axes).choose(asked)
    assert Aligned().choose(asked).tolist() == list(range(8))


def test_axes_need_scale_up_domains() -> None:
    plain = Wanted(4, np.arange(4, dtype=np.int32), 4, mesh=DeviceMesh({"tp": 4}))
    with pytest.raises(WorkloadError, match="the topology has none"):
        Aligned(axes=("tp",)).choose(plain)


@given(
    mesh=st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(1, 4)),
    domains=st.lists(st.integers(1, 9), min_size=1, max_size=8),
)
def test_every_group_is_whole_or_nothing_is_placed(mesh: tuple[int, int, int], domains: list[int]) -> None:
    asked = wanted(dict(zip(("pp", "ep", "tp"), mesh, strict=True)), domains)
    size = mesh[1] * mesh[2]
    room = sum(each // size for each in domains) >= mesh[0]
    try:
        placed = Aligned(axes=("tp", "ep")).choose(asked)
    except WorkloadError:
        assert not room
        return
    assert asked.mesh is not None
    assert asked.scale_up is not None
    assert len(set(placed.tolist())) == len(placed)
    of = units(asked.mesh, ("tp", "ep"))
    assert all(len(set(asked.scale_up[placed[of == unit]])) == 1 for unit in range(mesh[0]))


RACKS: dict[str, Any] = {
    "topology": {
        "kind": "leaf_spine",
        "leaves": 1,
        "spines": 1,
        "endpoints_per_leaf": 12,
        "latency": "1us",
        "hosts": {"gpus": 6, "nvlink_rate": "450GB/s", "nics": 6, "nic_rate": "50GB/s"},
    },
    "network": "fair_share",
    "collectives": {"all_reduce": "ring"},
}


def all_reduces(axes: dict[str, int], axis: str) -> cosim.Workload:
    operation = cosim.Operation(
        "sum", cosim.OpKind.COLLECTIVE, collective="all_reduce", size_bytes=10**9, axes=(axis,)
    )
    mesh = cosim.DeviceMesh(axes)
    program = cosim.Program("all ranks", (operation,))
    return cosim.Workload("sums", mesh, (program,), np.zeros(mesh.world_size, np.int32))


def test_the_default_keeps_groups_on_their_nvlinks_and_packed_is_doubtful() -> None:
    jobs = [{"name": "mine", "workload": all_reduces({"dp": 2, "tp": 4}, "tp")}]
    aligned = cosim.run(RACKS | {"jobs": jobs})
    assert aligned.records.end_ps == pytest.approx(2 * 3 / 4 * 1e9 / 450e9 * 1e12, rel=1e-3)
    assert aligned.doubts == ()
    packed = cosim.run(RACKS | {"jobs": [jobs[0] | {"placement": "packed"}]})
    assert packed.records.end_ps == pytest.approx(2 * 3 / 4 * 1e9 / 50e9 * 1e12, rel=1e-3)
    (doubt,) = packed.doubts
    assert "1 of 2 TP groups of 4 lie across scale-up domains" in doubt.why
    assert doubt.instead == "placement: {kind: aligned, axes: [tp]}"


def test_pipelines_across_hosts_are_no_doubt_where_that_keeps_others_whole() -> None:
    jobs = [{"workload": all_reduces({"pp": 2, "dp": 6}, "dp")}]
    assert cosim.run(RACKS | {"jobs": jobs}).doubts == ()
    spread = cosim.run(
        RACKS | {"jobs": [{"workload": all_reduces({"dp": 6, "pp": 2}, "pp"), "placement": "random"}]}
    )
    assert "PP groups" in spread.doubts[0].why


def test_hosts_without_the_nvlinks_that_their_gpus_have_are_doubtful() -> None:
    bare = RACKS["topology"] | {"hosts": {"gpus": 6, "nics": 6, "nic_rate": "50GB/s"}}
    model = {"kind": "model", "model": "bert-base", "parallel": {"dp": 2}, "memory": "ignore"}
    doubts = {
        gpu: [
            doubt.why
            for doubt in cosim.run(
                RACKS | {"topology": bare, "jobs": [{"workload": model | {"gpu": gpu}}]}
            ).doubts
        ]
        for gpu in ("h100-sxm", "l40s")
    }
    assert "links of 3.6 Tbps to its peers" in doubts["h100-sxm"][0]
    assert doubts["l40s"] == []
