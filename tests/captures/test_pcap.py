"""Captures built by hand are read as what they say, whatever they are wrapped in."""

from __future__ import annotations

from pathlib import Path

import pytest

from cosim.captures import pcap as pcap_module
from cosim.captures.read import read_capture
from cosim.captures.traffic import TrafficCapture
from cosim.errors import InputError
from tests.captures.packets import ethernet, ipv4, ipv6, pcap, pcapng, roce, tcp, udp

SECOND = 10**9
START = 1_700_000_000 * SECOND
A, B = "10.0.0.1", "10.0.0.2"
Row = tuple[str, str, int, int, int]


def read(tmp_path: Path, data: bytes) -> TrafficCapture:
    path = tmp_path / "a.pcap"
    path.write_bytes(data)
    return read_capture(path)


def rows(capture: TrafficCapture) -> list[Row]:
    """(source, destination, bytes, start, end), in nanoseconds."""
    found = capture.transfers
    assert found is not None
    columns = (found.size_bytes, found.start_ps // 1000, found.end_ps // 1000)
    names = [(found.hosts[a], found.hosts[b]) for a, b in zip(found.src, found.dst, strict=True)]
    return [(*ends, *map(int, rest)) for ends, *rest in zip(names, *columns, strict=True)]


def tcp_packets() -> list[tuple[int, bytes]]:
    """Two bursts of one connection, the second past the sequence number's wrap, and a packet sent again."""
    first = (1 << 32) - 2000
    sent = [(0, 0, 1000), (10, 1000, 1000), (20, 0, 1000), (5_000_000, 2000, 500), (5_000_100, 2500, 700)]
    return [
        (START + at, ethernet(ipv4(A, B, 6, tcp(first + offset, size)), 0x0800)) for at, offset, size in sent
    ]


TCP_ROWS = [(A, B, 2000, 0, 20), (A, B, 1200, 5_000_000, 5_000_100)]


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("build", [pcap, pcapng])
def test_tcp_bursts_count_what_was_sent_again_once(tmp_path: Path, build: object, order: str) -> None:
    assert callable(build)
    capture = read(tmp_path, build(tcp_packets(), order=order))
    assert rows(capture) == TCP_ROWS
    assert any("1,000 bytes were sent again" in note for note in capture.notes)


def test_blocks_of_a_file_are_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pcap_module, "_BLOCK", 1100)
    assert rows(read(tmp_path, pcap(tcp_packets()))) == TCP_ROWS


def test_snapped_packets_count_in_full(tmp_path: Path) -> None:
    assert rows(read(tmp_path, pcap(tcp_packets(), snap=64))) == TCP_ROWS


def test_microseconds(tmp_path: Path) -> None:
    assert rows(read(tmp_path, pcap(tcp_packets(), nano=False)))[1] == (A, B, 1200, 5_000_000, 5_000_000)


def test_missing_bytes_are_told(tmp_path: Path) -> None:
    packets = [(START + at, ethernet(ipv4(A, B, 6, tcp(at, 100)), 0x0800)) for at in (0, 100, 500)]
    assert any("300 bytes of TCP are missing" in note for note in read(tmp_path, pcap(packets)).notes)


@pytest.mark.parametrize("vlans", [0, 1, 2])
def test_vlans_and_ipv6(tmp_path: Path, vlans: int) -> None:
    packets = [
        (START, ethernet(ipv6("fd00::1", "fd00::2", 17, udp(321)), 0x86DD, vlans)),
        (START + 5, ethernet(ipv4(A, B, 17, udp(123)), 0x0800, vlans)),
        (START + 9, ethernet(b"\0" * 28, 0x0806, vlans)),
    ]
    capture = read(tmp_path, pcap(packets))
    assert rows(capture) == [("fd00::1", "fd00::2", 321, 0, 0), (A, B, 123, 5, 5)]
    assert any("1 packets ignored" in note for note in capture.notes)


@pytest.mark.parametrize(
    ("link", "before"), [(101, b""), (0, b"\2\0\0\0"), (9, b"\0\x21"), (113, b"\0" * 14 + b"\x08\0")]
)
def test_what_packets_begin_with(tmp_path: Path, link: int, before: bytes) -> None:
    assert rows(read(tmp_path, pcap([(START, before + ipv4(A, B, 17, udp(77)))], link=link))) == [
        (A, B, 77, 0, 0)
    ]


def test_rdma_messages_end_with_their_acknowledgement(tmp_path: Path) -> None:
    def sent(opcode: int, number: int, size: int) -> bytes:
        return ethernet(ipv4(A, B, 17, roce(opcode, number, size)), 0x0800)

    top = (1 << 24) - 1
    packets = [
        (START, sent(6, top - 1, 4096)),  # a write of three packets; the middle one is sent twice
        (START + 10, sent(7, top, 4096)),
        (START + 15, sent(7, top, 4096)),
        (START + 20, sent(8, 0, 17)),
        (START + 25, sent(10, 1, 3)),  # one of one packet, right behind
        (START + 90, ethernet(ipv4(B, A, 17, roce(0x11, 0, 0)), 0x0800)),
    ]
    assert rows(read(tmp_path, pcap(packets))) == [(A, B, 8209, 0, 90), (A, B, 3, 25, 25)]


def test_a_clock_that_begins_at_zero_keeps_the_first_burst(tmp_path: Path) -> None:
    """Simulators count from 0: the first packet begins a transfer without a pause before it."""
    packets = [(at - START, packet) for at, packet in tcp_packets()]
    assert rows(read(tmp_path, pcap(packets))) == TCP_ROWS


def test_a_message_that_began_before_the_capture_counts_from_there(tmp_path: Path) -> None:
    packets = [
        (START + at, ethernet(ipv4(A, B, 17, roce(opcode, at, 4096)), 0x0800))
        for at, opcode in ((0, 7), (10, 8), (20, 10))  # the middle and the end of a write, then a whole one
    ]
    assert rows(read(tmp_path, pcap(packets))) == [(A, B, 8192, 0, 10), (A, B, 4096, 20, 20)]


def test_a_file_that_ends_within_a_packet_is_read_up_to_there(tmp_path: Path) -> None:
    for data in (pcap(tcp_packets()), pcapng(tcp_packets())):
        capture = read(tmp_path, data[:-10])
        assert rows(capture)[1] == (A, B, 500, 5_000_000, 5_000_000)
        assert any("ends within a packet" in note for note in capture.notes)


def test_a_clock_that_goes_back_is_told(tmp_path: Path) -> None:
    packets = [(START + at, ethernet(ipv4(A, B, 17, udp(10)), 0x0800)) for at in (500, 100)]
    capture = read(tmp_path, pcap(packets))
    assert rows(capture) == [(A, B, 20, 0, 400)]
    assert any("goes back 1 times" in note for note in capture.notes)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "empty"),
        (pcap([])[:10], "damaged at byte 10"),
        (pcap([]), "holds no packet"),
        (pcap([], link=147), "link type 147"),
        (pcap(tcp_packets())[:24] + b"\xff" * 40, "damaged at byte 24"),
        (pcapng(tcp_packets())[:28] + b"\x07\0\0\0\x03\0\0\0" + b"\0" * 9, "damaged at byte 28"),
        (b"what is this", "no format of captures knows it"),
    ],
)
def test_what_is_no_capture_is_refused_with_its_place(tmp_path: Path, data: bytes, said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        read(tmp_path, data)
    assert "a.pcap" in str(caught.value)
