"""Messages of an advance as the kernel writes and reads them: what protobuf itself makes of them."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cosim.protocol.advance_answer import AdvanceAnswer
from cosim.protocol.advance_parts import advance_parts, numbered
from cosim.protocol.flat_flows import FlatFlows
from cosim.protocol.v1 import network_simulator_pb2 as pb
from tests.protocol.test_advance_parts import flat_flows

COLUMNS = "id", "start_ps", "time_ps", "cause_ps"
TIMES = st.integers(0, 2**62 - 1)


@st.composite
def advanced(draw: st.DrawFn) -> pb.Advanced:
    """A part of an answer, with and without what may be left out."""
    count = draw(st.integers(0, 4))
    names = COLUMNS if draw(st.booleans()) else COLUMNS[:3]
    columns: dict[str, Any] = {name: draw(st.lists(TIMES, min_size=count, max_size=count)) for name in names}
    scalars: dict[str, Any] = {
        name: draw(st.one_of(st.just(0), TIMES))
        for name in ("sequence", "granted_ps", "credit", "simulator_ns", "server_ns", "events")
    }
    scalars["stop_reason"] = draw(st.sampled_from(pb.StopReason.values()))
    made = pb.Advanced(more=draw(st.booleans()), **columns, **scalars)
    if draw(st.booleans()):
        made.digest.a, made.digest.b = draw(st.integers(0, 2**64 - 1)), draw(st.integers(0, 1))
    return made


def response(part: pb.Advanced) -> bytes:
    return pb.SessionResponse(advanced=part).SerializeToString()


@given(flat_flows(), st.integers(0, 2**62), st.integers(0, 10**6), st.booleans())
@settings(max_examples=40, deadline=None)
def test_a_request_is_byte_by_byte_what_protobuf_writes(
    flows: FlatFlows, horizon: int, budget: int, others: bool
) -> None:
    ids = np.arange(others * 3)
    paths = pb.Paths(src=[1], dst=[2], channel=[3], end=[1], link=[9]) if others else None
    (raw,) = advance_parts(paths, flows, (ids, ids, ids + 1), horizon, budget, 1 << 20, oldest_id=5)
    message = pb.SessionRequest.FromString(raw)
    assert message.SerializeToString(deterministic=True) == raw
    assert (message.advance.horizon_ps, message.advance.wall_budget_us) == (horizon, budget)
    assert (message.advance.oldest_id, message.advance.flows.count) == (5, flows.count)
    assert pb.SessionRequest.FromString(numbered(raw, 7)).advance.sequence == 7


@given(st.lists(advanced(), min_size=1, max_size=3))
@settings(max_examples=60, deadline=None)
def test_an_answer_says_what_protobuf_reads(parts: list[pb.Advanced]) -> None:
    answer = AdvanceAnswer()
    for _ in range(2):  # the second time into what the first left behind
        answer.begin()
        assert all(answer.read(response(part)) for part in parts)
    last = parts[-1]
    assert (answer.sequence, answer.granted_ps, answer.credit) == (
        last.sequence,
        last.granted_ps,
        last.credit,
    )
    assert (answer.has_more, answer.has_digest) == (last.more, last.HasField("digest"))
    assert answer.digest is None or (answer.digest.a, answer.digest.b) == (last.digest.a, last.digest.b)
    assert answer.message() == last
    for name, column in zip(COLUMNS, (answer.id, answer.start, answer.time, answer.cause), strict=True):
        told = [one for part in parts for one in (getattr(part, name) or part.time_ps)]
        assert column[: answer.count].tolist() == told
    for part, stripped in zip(parts, answer.stripped, strict=True):
        for name in ("digest", "simulator_ns", "server_ns"):
            part.ClearField(name)
        assert stripped == response(part)


@given(advanced(), st.data())
@settings(max_examples=60, deadline=None)
def test_broken_bytes_are_refused_or_read_as_protobuf_does(part: pb.Advanced, data: st.DataObject) -> None:
    raw = bytearray(response(part))
    for _ in range(data.draw(st.integers(0, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    raw = raw[: data.draw(st.integers(0, len(raw)))]
    answer = AdvanceAnswer()
    if not answer.read(bytes(raw)):
        return
    there = pb.SessionResponse.FromString(bytes(raw)).advanced
    assert (answer.sequence, answer.credit) == ((there.sequence + 2**63) % 2**64 - 2**63, there.credit)
    assert answer.is_uneven or answer.count == len(there.id)


def test_numbers_that_are_not_packed_and_fields_that_nobody_knows_are_read_too() -> None:
    fields = b"".join(
        bytes([field << 3 | 1]) + value.to_bytes(8, "little")
        for field, value in ((5, 3), (6, 10), (7, 20), (5, 4), (6, 11), (7, 21))
    )
    unknown = b"\xfa\x01\x02hi" + b"\xf5\x01abcd"
    answer = AdvanceAnswer()
    body = b"\x08\x07" + fields + unknown
    assert answer.read(b"\x12" + bytes([len(body)]) + body)
    assert (answer.sequence, answer.id[:2].tolist(), answer.time[:2].tolist()) == (7, [3, 4], [20, 21])
    assert answer.cause[:2].tolist() == [20, 21]
    assert unknown in answer.stripped[0]


def test_columns_of_different_lengths_are_noticed() -> None:
    answer = AdvanceAnswer()
    assert answer.read(response(pb.Advanced(id=[1, 2], start_ps=[1], time_ps=[1, 2])))
    assert (answer.is_uneven, answer.count) == (True, 0)
    assert not answer.read(pb.SessionResponse(opened=pb.Opened()).SerializeToString())
    assert not answer.read(b"")
