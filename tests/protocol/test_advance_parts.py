"""Columns, digest, addresses and messages against definitions of their own."""

import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cosim.engine.reference.digest import RunDigest
from cosim.errors import InputError, LaunchError, ProtocolError
from cosim.network.flows import ON_COMPLETION, ON_START
from cosim.protocol.address import Tls, check_address
from cosim.protocol.advance_parts import advance_parts, encode, numbered
from cosim.protocol.digest import Digest
from cosim.protocol.flat_flows import DEFAULTS, FlatFlows, array, decode, join, make
from cosim.protocol.replay_log import LogReader, frame, frames
from cosim.protocol.v1 import network_simulator_pb2 as pb

INT64 = st.integers(-(2**63), 2**63 - 1)


@st.composite
def flat_flows(draw: st.DrawFn) -> FlatFlows:
    count = draw(st.integers(1, 30))
    first = draw(st.integers(0, 10**6))
    columns = {}
    for name, (dtype, default) in DEFAULTS.items():
        high = 2**31 - 1 if dtype is np.int32 else 2**62
        value = st.just(default) if draw(st.booleans()) else st.integers(0, high)
        if draw(st.booleans()):
            columns[name] = np.array([draw(value)], dtype)
        else:
            columns[name] = np.array([draw(value) for _ in range(count)], dtype)
    flows = make(first, count, **columns)
    if draw(st.booleans()):
        degree = [draw(st.integers(0, min(3, first + k))) for k in range(count)]
        flows.dependency_ptr = np.concatenate([[0], np.cumsum(degree)]).astype(np.int64)
        total = sum(degree)
        low = [first + k for k, d in enumerate(degree) for _ in range(d)]
        flows.dependency_id = np.array([draw(st.integers(0, one - 1)) for one in low], np.int64)
        kinds = draw(st.lists(st.sampled_from([ON_COMPLETION, ON_START]), min_size=total, max_size=total))
        flows.dependency_kind = np.array(kinds, np.int8)
    return flows


def same(one: FlatFlows, other: FlatFlows) -> bool:
    return (
        (one.first_id, one.count) == (other.first_id, other.count)
        and all(np.array_equal(one.column(name), other.column(name)) for name in DEFAULTS)
        and np.array_equal(one.dependency_id, other.dependency_id)
        and np.array_equal(one.dependency_kind, other.dependency_kind)
        and (not one.has_dependencies or np.array_equal(one.dependency_ptr, other.dependency_ptr))
    )


@given(flat_flows())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_flows_come_back_from_a_message_as_they_were(flows: FlatFlows) -> None:
    message = pb.Flows()
    encode(flows, message)
    assert same(decode(pb.Flows.FromString(message.SerializeToString())), flows)


@given(flat_flows(), st.integers(400, 4000))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_an_advance_in_parts_fits_and_is_the_same_put_together(flows: FlatFlows, most: int) -> None:
    ids = np.arange(17)
    raw = advance_parts(None, flows, (ids, ids + 5, ids + 3), 99, 7, most)
    parts = [pb.SessionRequest.FromString(numbered(one, 3)).advance for one in raw]
    assert all(len(one) <= most for one in raw)
    assert [part.more for part in parts] == [True] * (len(parts) - 1) + [False]
    assert {part.sequence for part in parts} == {3}
    assert (parts[-1].horizon_ps, parts[-1].wall_budget_us) == (99, 7)
    assert same(join([decode(part.flows) for part in parts if part.HasField("flows")]), flows)
    assert [one for part in parts for one in part.starts.id] == list(range(17))
    assert [one for part in parts for one in part.starts.cause_ps] == list(range(3, 20))


@pytest.mark.parametrize(
    ("rows", "a", "b"),
    [
        ([], 0, 0),
        ([(0, 0, 0)], 0x238275BC38FCBE91, 0x35A01C6031B200BE),
        ([(1, 2, 3)], 0x6AE515C1C0AC7E37, 0xA363D0A196260012),
        ([(-1, 5, 1000000)], 0xEB6761998B8D1C45, 0xC0385654814A563C),
        ([(1, 2, 3), (-1, 5, 1000000)], 0x564C775B4C399A7C, 0x639C26F61770564E),
    ],
)
def test_the_digest_is_what_the_readme_says(rows: list[tuple[int, int, int]], a: int, b: int) -> None:
    table = np.array(rows, np.int64).reshape(-1, 3)
    digest = Digest()
    digest.add(table[:, 0].copy(), table[:, 1].copy(), table[:, 2].copy())
    assert (digest.a, digest.b) == (a, b)


@given(st.lists(st.tuples(INT64, INT64, INT64), max_size=20), st.integers(0, 20))
@settings(deadline=None)
def test_the_digest_is_the_engines_and_knows_no_cuts(rows: list[tuple[int, int, int]], cut: int) -> None:
    table = np.array(rows, np.int64).reshape(-1, 3)
    whole, parts = Digest(), Digest()
    columns = [np.ascontiguousarray(table[:, c]) for c in range(3)]
    whole.add(*columns)
    parts.add(*(column[cut:] for column in columns))
    parts.add(*(column[:cut] for column in columns))
    assert whole == parts
    digest = RunDigest()
    for row in zip(*(column.tolist() for column in columns), strict=True):
        digest.add(*row)
    assert [whole.a, whole.b] == [one % 2**64 for one in digest.sums]


RECORDS = st.lists(st.tuples(st.integers(1, 4), st.binary(max_size=40)), max_size=8)


@given(RECORDS, st.data())
@settings(deadline=None)
def test_a_log_cut_anywhere_gives_the_records_before_the_cut(
    records: list[tuple[int, bytes]], data: st.DataObject
) -> None:
    framed = [frame(kind, content) for kind, content in records]
    whole = b"".join(framed)
    cut = data.draw(st.integers(0, len(whole)))
    ends = np.cumsum([0, *map(len, framed)])
    fits = int((ends <= cut).sum()) - 1
    found = [(kind, content) for kind, content, _ in frames(io.BytesIO(whole[:cut]))]
    assert found == records[:fits]


@given(RECORDS.filter(bool), st.data())
@settings(deadline=None)
def test_a_flipped_bit_is_noticed(records: list[tuple[int, bytes]], data: st.DataObject) -> None:
    whole = bytearray(b"".join(frame(kind, content) for kind, content in records))
    at = data.draw(st.integers(0, len(whole) - 1))
    whole[at] ^= 1 << data.draw(st.integers(0, 7))
    found = [(kind, content) for kind, content, _ in frames(io.BytesIO(bytes(whole)))]
    assert found == records[: len(found)]
    assert len(found) < len(records)


def test_another_file_is_not_taken_for_a_log(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"something else")
    with pytest.raises(InputError, match="not the injection log"):
        LogReader(tmp_path / "log")


@pytest.mark.parametrize("address", ["unix:/tmp/x", "127.0.0.1:50051", "localhost:1", "[::1]:7"])
def test_addresses_on_this_machine_need_no_tls(address: str) -> None:
    assert check_address(address) == address


@pytest.mark.parametrize("address", ["10.0.0.1:50051", "example.org:443", "0.0.0.0:1", "[::]:1"])
def test_off_this_machine_tls_is_needed(address: str) -> None:
    with pytest.raises(LaunchError, match="TLS"):
        check_address(address)
    assert check_address(address, Tls()) == address


@pytest.mark.parametrize("address", ["", "unix:", "unix:" + "x" * 200, "host", ":1", "host:x", "host:70000"])
def test_what_is_not_an_address_is_refused(address: str) -> None:
    with pytest.raises(LaunchError):
        check_address(address)


def test_a_number_beyond_63_bits_is_refused_by_name() -> None:
    with pytest.raises(ProtocolError, match="9223372036854775808 is more than a time or an id can be"):
        array([0, 2**63], np.int64)
