"""Packets and files built by hand, field by field, from the formats' documents."""

from __future__ import annotations

import struct
from ipaddress import ip_address


def ethernet(payload: bytes, kind: int, vlans: int = 0) -> bytes:
    tags = b"".join(struct.pack(">HH", 0x8100, 7) for _ in range(vlans))
    return b"\x02" * 12 + tags + struct.pack(">H", kind) + payload


def ipv4(src: str, dst: str, protocol: int, payload: bytes) -> bytes:
    ends = ip_address(src).packed + ip_address(dst).packed
    return struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(payload), 0, 0, 64, protocol, 0) + ends + payload


def ipv6(src: str, dst: str, protocol: int, payload: bytes) -> bytes:
    ends = ip_address(src).packed + ip_address(dst).packed
    return struct.pack(">IHBB", 6 << 28, len(payload), protocol, 64) + ends + payload


def tcp(sequence: int, size: int, flags: int = 0x10, ports: tuple[int, int] = (1000, 2000)) -> bytes:
    head = struct.pack(">HHIIBBHHH", *ports, sequence & 0xFFFFFFFF, 0, 5 << 4, flags, 0, 0, 0)
    return head + bytes(size)


def udp(size: int, ports: tuple[int, int] = (1000, 2000)) -> bytes:
    return struct.pack(">HHHH", *ports, 8 + size, 0) + bytes(size)


def roce(opcode: int, number: int, size: int, pair: int = 17) -> bytes:
    """UDP to port 4791: base header, the opcode's own, payload, padding, checksum."""
    more = {6: 16, 10: 16, 0x11: 4}.get(opcode, 0)
    pad = -size % 4
    base = struct.pack(">BBHII", opcode, pad << 4, 0xFFFF, pair, number & 0xFFFFFF)
    return (
        udp(0, (50000, 4791))[:4]
        + struct.pack(">HH", 8 + 12 + more + size + pad + 4, 0)
        + base
        + bytes(more + size + pad + 4)
    )


def pcap(
    packets: list[tuple[int, bytes]], *, order: str = "<", nano: bool = True, link: int = 1, snap: int = 65535
) -> bytes:
    """A file of (nanoseconds, packet)."""
    magic, unit = (0xA1B23C4D, 1) if nano else (0xA1B2C3D4, 1000)
    made = struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, snap, link)
    for time, packet in packets:
        kept = packet[:snap]
        made += (
            struct.pack(order + "IIII", time // 10**9, time % 10**9 // unit, len(kept), len(packet)) + kept
        )
    return made


def pcapng(packets: list[tuple[int, bytes]], *, order: str = "<", link: int = 1, exponent: int = 9) -> bytes:
    """The same as pcapng, in units of 10^-exponent s."""

    def block(kind: int, body: bytes) -> bytes:
        size = 12 + len(body)
        return struct.pack(order + "II", kind, size) + body + struct.pack(order + "I", size)

    made = block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))
    option = struct.pack(order + "HHB3x", 9, 1, exponent) + struct.pack(order + "HH", 0, 0)
    made += block(1, struct.pack(order + "HHI", link, 0, 0) + option)
    made += block(4, b"\0" * 8)  # names, which a reader skips
    for time, packet in packets:
        units = time * 10**exponent // 10**9
        head = struct.pack(order + "IIIII", 0, units >> 32, units & 0xFFFFFFFF, len(packet), len(packet))
        made += block(6, head + packet + bytes(-len(packet) % 4))
    return made
