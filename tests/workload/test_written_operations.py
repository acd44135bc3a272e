from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from cosim.context import HERE
from cosim.errors import MismatchError, StallError, WorkloadError
from cosim.workload.program import OpKind, Peer
from cosim.workload.written import Operations

PIPELINE = """
mesh: {pp: 2, dp: 2}
programs:
  - name: first stage
    ranks: [0, 1]
    operations:
      - {name: f, kind: compute, duration: 10us, phase: forward}
      - {name: activations, kind: send, peer: {axis: pp, offset: 1}, size: 1MiB, deps: [f]}
      - {name: sync, kind: collective, collective: all_reduce, axes: [dp], size: 64MiB, deps: [f]}
  - name: second stage
    ranks: [2, 3]
    operations:
      - {name: wait, kind: recv, peer: {axis: pp, offset: -1}, size: 1MiB}
      - {name: f, kind: compute, duration: 10us, deps: [wait]}
      - {name: sync, kind: collective, collective: all_reduce, axes: [dp], size: 1MiB, deps: [f]}
      - {name: swap, kind: memory, duration: 3us, stream: dma, deps: [f, sync]}
"""


def read(text: str) -> Operations:
    return Operations.model_validate(yaml.safe_load(text))


def test_operations_are_as_they_are_written() -> None:
    workload = read(PIPELINE).build(HERE)
    first, second = (workload.program(rank).operations for rank in (0, 2))
    assert [op.stream for op in first] == ["compute", "comm", "comm"]
    assert [op.stream for op in second] == ["", "compute", "comm", "dma"]
    assert first[1].peer == Peer(axis="pp", offset=1)
    assert second[3].deps == (1, 2)
    assert (first[0].kind, first[0].duration_ps, first[0].phase) == (OpKind.COMPUTE, 10_000_000, "forward")
    assert workload.mesh.group(2, first[2].axes) == (2, 3)


def one(**operation: object) -> dict[str, Any]:
    return {"world_size": 1, "programs": [{"operations": [operation]}]}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (one(name="c", kind="compute"), "compute 'c' needs 'duration'"),
        (one(name="c", kind="compute", duration="1us", size=3), "compute 'c' takes no 'size'"),
        (one(name="s", kind="send", size=1), "send 's' needs 'peer'"),
        (one(name="a", kind="collective", collective="all_reduce"), "all_reduce 'a' needs 'size'"),
        (one(name="c", kind="compute", duration="1us", deps=["x"]), "'c' depends on 'x'; there are: c"),
        ({"programs": [{"operations": [{"name": "c", "kind": "compute", "duration": 0}]}]}, "give either"),
    ],
)
def test_a_field_too_many_or_too_few_is_named(data: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Operations.model_validate(data)


def test_programs_cover_every_rank_once() -> None:
    program = {"ranks": [0, 1], "operations": [{"name": "c", "kind": "compute", "duration": "1us"}]}
    for world_size, programs, message in (
        (3, [program], "rank 2 has no program"),
        (2, [program, program], "rank 0 has two programs: 0 and 1"),
        (1, [program], "program 0 is for rank 1 of 1"),
    ):
        spec = Operations.model_validate({"world_size": world_size, "programs": programs})
        with pytest.raises(WorkloadError, match=message):
            spec.build(HERE)


def test_what_can_not_end_is_refused_when_it_is_built() -> None:
    with pytest.raises(StallError, match="never posts the RECV"):
        read(PIPELINE.replace("kind: recv", "kind: send").replace("offset: -1", "offset: -1, ")).build(HERE)
    with pytest.raises(MismatchError, match="rank 0 sends 1048576 B to rank 2 with tag 0, which receives 2"):
        read(PIPELINE.replace("offset: -1}, size: 1MiB", "offset: -1}, size: 2MiB")).build(HERE)
    with pytest.raises(WorkloadError, match="op 0 'f' -> op 1 'g' -> op 0 'f'"):
        read(
            "{world_size: 1, programs: [{operations: [{name: f, kind: compute, duration: 1us, deps: [g]},"
            " {name: g, kind: compute, duration: 1us, deps: [f]}]}]}"
        ).build(HERE)
