"""Headers of packets, a block of packets at a time: who sends to whom, how much, in which connection.

Ethernet with VLAN tags, Linux cooked captures (SLL, SLL2), PPP, raw IP and BSD loopback; IPv4, IPv6 without
extension headers; TCP, UDP, RoCEv2 (InfiniBand Architecture Specification 1.2.1, annex A17, opcodes of table
35). Packets may be snapped: only headers are needed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
Bools = NDArray[np.bool_]

TCP, UDP, ROCE, OTHER = 1, 2, 3, 0
_ROCE_PORT = 4791
_VLAN = (0x8100, 0x88A8, 0x9100)
LINK_TYPES = {
    0: "loopback",
    1: "ethernet",
    9: "ppp",
    12: "raw",
    101: "raw",
    113: "sll",
    228: "raw",
    229: "raw",
}
LINK_TYPES |= {276: "sll2", 108: "loopback"}

_EXTRA = np.zeros(256, np.int64)
"""Bytes of headers between the base header and the payload, by opcode."""
_FIRST = np.zeros(256, np.bool_)
"""Whether a packet with this opcode begins a message."""
_LAST = np.zeros(256, np.bool_)
_PAYLOAD = np.zeros(256, np.bool_)
for _service in (0x00, 0x20):  # reliable and unreliable connections
    for _op, _more in {0: 0, 1: 0, 2: 0, 3: 4, 4: 0, 5: 4, 6: 16, 7: 0, 8: 0, 9: 4, 10: 16, 11: 20}.items():
        _EXTRA[_service + _op], _PAYLOAD[_service + _op] = _more, True
    _FIRST[[_service + _op for _op in (0, 4, 5, 6, 10, 11)]] = True
    _LAST[[_service + _op for _op in (2, 3, 4, 5, 8, 9, 10, 11)]] = True
for _op, _more in {0x0D: 4, 0x0E: 0, 0x0F: 4, 0x10: 4, 0x16: 4, 0x17: 4, 0x64: 8, 0x65: 12}.items():
    _EXTRA[_op], _PAYLOAD[_op] = _more, True
_FIRST[[0x0D, 0x10, 0x17, 0x64, 0x65]] = True
_LAST[[0x0F, 0x10, 0x16, 0x17, 0x64, 0x65]] = True
ACKNOWLEDGE = 0x11


@dataclass(frozen=True, eq=False)
class Packets:
    """Headers of a block's packets; columns of one length.

    ``kind`` is TCP, UDP, ROCE or OTHER; ``known`` whether the addresses are. ``source`` and ``target`` are
    uint8[packets, 17]: the IP version, then the address, IPv4's in the first four bytes. ``connection`` is
    both ports, or the destination's queue pair. ``size_bytes`` is the payload. ``sequence`` and ``advance``:
    TCP's number and what it grows by, or RoCE's packet number and 1. ``first``, ``last``: whether the packet
    begins or ends a message, of RoCE; ``acknowledges``: it is an acknowledgement of RoCE.
    """

    kind: I64
    known: Bools
    source: U8
    target: U8
    connection: I64
    size_bytes: I64
    sequence: I64
    advance: I64
    first: Bools
    last: Bools
    acknowledges: Bools


class _Bytes:
    """Numbers at places of a block, most significant byte first; 0 beyond what was captured."""

    def __init__(self, block: U8, begin: I64, length: I64) -> None:
        self._block, self._begin, self._end = block, begin, begin + length

    def within(self, at: I64, count: int) -> Bools:
        return np.asarray(self._begin + at + count <= self._end, np.bool_)

    def number(self, at: I64, count: int) -> I64:
        value = np.zeros(len(at), np.int64)
        place = self._begin + at
        for offset in range(count):
            value = value << 8 | self._byte(place + offset)
        return value

    def _byte(self, place: I64) -> I64:
        inside = place < self._end
        return np.where(inside, self._block[np.where(inside, place, 0)], 0).astype(np.int64)

    def address(self, at: I64, count: int) -> U8:
        place = (self._begin + at)[:, None] + np.arange(count)
        return np.asarray(self._block[np.minimum(place, len(self._block) - 1)], np.uint8)


def parse(block: U8, begin: I64, length: I64, on_wire: I64, link: str) -> Packets:
    """Read the headers of packets of a block.

    Parameters
    ----------
    block
        uint8: bytes of the file.
    begin, length
        int64[packets]: where in the block each packet is, how much of it was captured.
    on_wire
        int64[packets]: how long each was.
    link
        What the packets begin with, one of ``LINK_TYPES``' names.
    """
    data = _Bytes(block, begin, length)
    at, version = _network(data, link, len(begin))
    four, six = version == 4, version == 6
    header = np.where(four, 4 * (data.number(at, 1) & 15), 40)
    total = np.where(four, data.number(at + 2, 2), 40 + data.number(at + 4, 2))
    # Segmentation offload leaves the length 0.
    total = np.where((four & (total == 0)) | (six & (total == 40)), on_wire - at, total)
    protocol = np.where(four, data.number(at + 9, 1), data.number(at + 6, 1))
    fragment = four & ((data.number(at + 6, 2) & 0x1FFF) > 0)
    known = (four & (header >= 20) | six) & data.within(at, 20) & (four | data.within(at, 40))
    source, target = (_addresses(data, at, four, six, known, end) for end in (0, 1))
    body = at + header
    room = np.maximum(total - header, 0)
    whole = known & ~fragment & data.within(body, 8)
    tcp = whole & (protocol == 6) & data.within(body, 14)
    udp = whole & (protocol == 17)
    roce = udp & (data.number(body + 2, 2) == _ROCE_PORT) & data.within(body, 20)
    udp &= ~roce
    ports = data.number(body, 4)
    tcp_header = 4 * (data.number(body + 12, 1) >> 4)
    flags = data.number(body + 13, 1)
    opcode = np.where(roce, data.number(body + 8, 1), 255)
    pad = data.number(body + 9, 1) >> 4 & 3
    payload = np.select(
        [tcp, udp, roce & _PAYLOAD[opcode]],
        [room - tcp_header, room - 8, room - 24 - pad - _EXTRA[opcode]],
        default=0,
    )
    payload = np.where(known & ~(tcp | udp | roce), room, np.maximum(payload, 0))
    opens = (flags >> 1 & 1) + (flags & 1)
    return Packets(
        np.select([tcp, udp, roce], [TCP, UDP, ROCE], default=OTHER),
        known,
        source,
        target,
        np.select([roce, tcp | udp], [data.number(body + 13, 3), ports], default=0),
        payload,
        np.where(tcp, data.number(body + 4, 4), data.number(body + 17, 3)),
        np.where(tcp, payload + opens, 1),
        roce & _FIRST[opcode],
        roce & _LAST[opcode],
        roce & (opcode == ACKNOWLEDGE),
    )


def _network(data: _Bytes, link: str, count: int) -> tuple[I64, I64]:
    """Where each packet's IP header begins, and its version; 0: it is no IP."""
    at = np.zeros(count, np.int64)
    if link == "raw":
        return at, data.number(at, 1) >> 4
    if link == "loopback":
        return at + 4, data.number(at + 4, 1) >> 4
    kind_at = {"ethernet": 12, "sll": 14, "sll2": 0, "ppp": 0}[link]
    after = {"ethernet": 14, "sll": 16, "sll2": 20, "ppp": 2}[link]
    kind = data.number(at + kind_at, 2)
    at = at + after
    for _ in range(3):
        tagged = np.isin(kind, _VLAN)
        if not tagged.any():
            break
        kind = np.where(tagged, data.number(at + 2, 2), kind)
        at = np.where(tagged, at + 4, at)
    four, six = (0x21, 0x57) if link == "ppp" else (0x0800, 0x86DD)
    version = data.number(at, 1) >> 4
    return at, np.select([(kind == four) & (version == 4), (kind == six) & (version == 6)], [4, 6], default=0)


def _addresses(data: _Bytes, at: I64, four: Bools, six: Bools, known: Bools, end: int) -> U8:
    found = np.zeros((len(at), 17), np.uint8)
    chosen = np.flatnonzero(known & four)
    found[chosen, 0] = 4
    found[chosen, 1:5] = _at(data, chosen).address(at[chosen] + 12 + 4 * end, 4)
    chosen = np.flatnonzero(known & six)
    if len(chosen):
        found[chosen, 0] = 6
        found[chosen, 1:] = _at(data, chosen).address(at[chosen] + 8 + 16 * end, 16)
    return found


def _at(data: _Bytes, chosen: NDArray[np.intp]) -> _Bytes:
    return _Bytes(data._block, data._begin[chosen], data._end[chosen] - data._begin[chosen])
