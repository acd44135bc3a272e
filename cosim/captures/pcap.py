"""Packet captures: pcap, in micro- and nanoseconds, and pcapng, read in blocks of bounded memory.

Formats: draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng. What becomes of packets: :mod:`.connections`.
A file that ends within a packet is read up to there, and a note says so.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosim.captures.connections import Connections
from cosim.captures.packets import LINK_TYPES, parse
from cosim.captures.traffic import TrafficCapture
from cosim.errors import InputError, Location

I64 = NDArray[np.int64]

_BLOCK = 1 << 22
_MOST_CAPTURED = 1 << 20
_NS = 10**9
_MAGIC = {0xA1B2C3D4: 1000, 0xA1B23C4D: 1}
PCAPNG = b"\x0a\x0d\x0d\x0a"
_SECTION, _INTERFACE, _OLD_PACKET, _SIMPLE, _PACKET = 0x0A0D0D0A, 1, 2, 3, 6


def is_pcap(begin: bytes) -> bool:
    """Whether a file that begins so is a packet capture."""
    if begin[:4] == PCAPNG:
        return True
    return len(begin) >= 4 and any(struct.unpack(order + "I", begin[:4])[0] in _MAGIC for order in "<>")


class _PacketBlock(NamedTuple):
    """Packets of a block: places in it, lengths, times in nanoseconds, and what each begins with."""

    block: NDArray[np.uint8]
    begin: I64
    length: I64
    on_wire: I64
    time_ns: I64
    link: str


@dataclass
class _Notes:
    cut_at: int | None = None
    untimed: int = 0


def read_pcap(path: Path) -> TrafficCapture:
    """Read a packet capture.

    Raises
    ------
    InputError
        It is damaged; says at which byte.
    """
    notes = _Notes()
    connections = Connections()
    total = 0
    with path.open("rb") as file:
        start = file.read(4)
        file.seek(0)
        blocks = _pcapng(path, file, notes) if start == PCAPNG else _pcap(path, file, notes)
        for rows in blocks:
            total += len(rows.begin)
            connections.add(parse(rows.block, rows.begin, rows.length, rows.on_wire, rows.link), rows.time_ns)
    if not total:
        raise InputError("holds no packet", location=Location(str(path)), hint="capture while the job runs")
    said = [f"{total:,} packets"]
    if notes.untimed:
        said.append(f"{notes.untimed:,} packets without a time left out (simple packet blocks)")
    if notes.cut_at is not None:
        said.append(f"the file ends within a packet, at byte {notes.cut_at:,}; what is before was read")
    transfers = connections.transfers(path)
    return TrafficCapture(str(path), "packet capture", transfers, notes=(*said, *connections.notes()))


def _broken(path: Path, at: int, what: str) -> InputError:
    return InputError(
        f"damaged at byte {at:,}: {what}",
        location=Location(str(path)),
        hint=f"copy it again, or cut it there: head -c {at} FILE > good.pcap reads what is before",
    )


def _link(path: Path, at: int, number: int) -> str:
    if number not in LINK_TYPES:
        raise _broken(path, at, f"link type {number}, which is none of {', '.join(map(str, LINK_TYPES))}")
    return LINK_TYPES[number]


def _pcap(path: Path, file: BinaryIO, notes: _Notes) -> Iterator[_PacketBlock]:
    head = file.read(24)
    if len(head) < 24:
        raise _broken(path, len(head), "the file's header is 24 bytes")
    order = "<" if struct.unpack("<I", head[:4])[0] in _MAGIC else ">"
    magic, *_, number = struct.unpack(order + "IHHiIII", head)
    unit, link = _MAGIC[magic], _link(path, 20, number & 0xFFFF)
    lengths = struct.Struct(order + "8xI4x")
    left, at = b"", 24
    while True:
        more = file.read(_BLOCK)
        block = left + more
        starts, offset, end = [], 0, len(block)
        while offset + 16 <= end:
            (size,) = lengths.unpack_from(block, offset)
            if size > _MOST_CAPTURED:
                raise _broken(path, at + offset, f"a packet of {size:,} captured bytes")
            if offset + 16 + size > end:
                break
            starts.append(offset)
            offset += 16 + size
        if starts:
            yield _pcap_rows(path, block, np.array(starts, np.int64), order, unit, link, at)
        left, at = block[offset:], at + offset
        if not more:
            break
    if left:
        notes.cut_at = at


def _pcap_rows(
    path: Path, block: bytes, starts: I64, order: str, unit: int, link: str, at: int
) -> _PacketBlock:
    raw = np.frombuffer(block, np.uint8)
    fields = raw[starts[:, None] + np.arange(16)].copy().view(np.dtype(f"{order}u4"))
    seconds, part, length, on_wire = fields.astype(np.int64).T
    wrong = np.flatnonzero(part >= _NS // unit)
    if len(wrong):
        raise _broken(path, at + int(starts[wrong[0]]), f"{int(part[wrong[0]])} parts of a second in a time")
    return _PacketBlock(raw, starts + 16, length, on_wire, seconds * _NS + part * unit, link)


@dataclass
class _Interface:
    link: str
    per_second: int
    offset_s: int


def _pcapng(path: Path, file: BinaryIO, notes: _Notes) -> Iterator[_PacketBlock]:
    order, interfaces, at = "<", list[_Interface](), 0
    waiting: dict[int, list[tuple[bytes, int, int]]] = {}
    held = 0
    while True:
        head = file.read(12)
        if len(head) < 12:
            if head:
                notes.cut_at = at
            break
        if head[:4] == PCAPNG:
            order = "<" if head[8:12] == b"\x4d\x3c\x2b\x1a" else ">"
        kind, size = struct.unpack(order + "II", head[:8])
        if size < 12 or size % 4 or size > _MOST_CAPTURED + 4096:
            raise _broken(path, at, f"a block of {size:,} bytes")
        body = head[8:] + file.read(size - 12)
        if len(body) < size - 8:
            notes.cut_at = at
            break
        if struct.unpack(order + "I", body[-4:])[0] != size:
            raise _broken(path, at + size - 4, "a block's two lengths differ")
        body = body[:-4]
        if kind == _SECTION:
            if body[:4] not in (b"\x4d\x3c\x2b\x1a", b"\x1a\x2b\x3c\x4d"):
                raise _broken(path, at + 8, "a section of neither byte order")
            yield from _flush(waiting, interfaces)
            interfaces, held = [], 0
        elif kind == _INTERFACE:
            interfaces.append(_interface(path, at, body, order))
        elif kind in (_PACKET, _OLD_PACKET):
            number, row = _packet(path, at, kind, body, order, interfaces)
            waiting.setdefault(number, []).append(row)
            held += len(row[0])
        elif kind == _SIMPLE:
            notes.untimed += 1
        if held > _BLOCK or sum(map(len, waiting.values())) > 1 << 16:
            yield from _flush(waiting, interfaces)
            held = 0
        at += size
    yield from _flush(waiting, interfaces)


def _interface(path: Path, at: int, body: bytes, order: str) -> _Interface:
    if len(body) < 8:
        raise _broken(path, at, "an interface's block is too short")
    link = _link(path, at + 8, struct.unpack_from(order + "H", body)[0])
    per_second, offset_s, place = 10**6, 0, 8
    while place + 4 <= len(body):
        code, length = struct.unpack_from(order + "HH", body, place)
        value = body[place + 4 : place + 4 + length]
        if code == 0 or len(value) < length:
            break
        if code == 9 and length == 1:
            exponent = value[0] & 127
            per_second = 2**exponent if value[0] & 128 else 10**exponent
            if per_second > 10**18:
                raise _broken(path, at + 8 + place, "times finer than 10^-18 s")
        if code == 14 and length == 8:
            (offset_s,) = struct.unpack(order + "q", value)
        place += 4 + (length + 3) // 4 * 4
    return _Interface(link, per_second, offset_s)


def _packet(
    path: Path, at: int, kind: int, body: bytes, order: str, interfaces: list[_Interface]
) -> tuple[int, tuple[bytes, int, int]]:
    if len(body) < 20:
        raise _broken(path, at, "a packet's block is too short")
    if kind == _PACKET:
        number, high, low, length, on_wire = struct.unpack_from(order + "IIIII", body)
    else:
        number, _, high, low, length, on_wire = struct.unpack_from(order + "HHIIII", body)
    if number >= len(interfaces):
        raise _broken(path, at + 8, f"a packet of interface {number}, of {len(interfaces)}")
    if length > len(body) - 20:
        raise _broken(
            path, at + 20, f"a packet of {length:,} captured bytes in a block of {len(body) + 12:,}"
        )
    one = interfaces[number]
    time_ns = (high << 32 | low) * _NS // one.per_second + one.offset_s * _NS
    if not 0 <= time_ns < 1 << 62:
        raise _broken(path, at + 12, "a time beyond the year 2116")
    return number, (body[20 : 20 + length], on_wire, time_ns)


def _flush(
    waiting: dict[int, list[tuple[bytes, int, int]]], interfaces: list[_Interface]
) -> Iterator[_PacketBlock]:
    for number, rows in waiting.items():
        block = b"".join(data for data, _, _ in rows)
        length = np.array([len(data) for data, _, _ in rows], np.int64)
        on_wire, time_ns = (np.array([row[at] for row in rows], np.int64) for at in (1, 2))
        begin = np.cumsum(length) - length
        yield _PacketBlock(
            np.frombuffer(block or b"\0", np.uint8), begin, length, on_wire, time_ns, interfaces[number].link
        )
    waiting.clear()
