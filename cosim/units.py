"""Units: integer picoseconds, bytes, bits per second.

Time is an ``int`` number of picoseconds everywhere (names end in ``_ps``), sizes are ``int`` bytes,
rates are bits per second. A link's rate is a ``float`` only because ASTRA-sim's notation
(``741.34`` times 2^33 bit/s) is not an integer; nothing else is.

``bytes * 8 * 10**12`` leaves int64 above 1.15 MB: Python's integers don't, numpy's do.
"""

from __future__ import annotations

import re
from fractions import Fraction

PS_PER_NS = 1_000
PS_PER_US = 1_000_000
PS_PER_MS = 1_000_000_000
PS_PER_S = 1_000_000_000_000

NEVER = (1 << 62) - 1
"""A time that is never reached, in picoseconds (about 53 days); sums of two still fit int64."""

MOST_NS = float(NEVER // 1000 - 1)
"""The same in nanoseconds, for models that count in them."""
TOO_LATE = f"simulated time would pass the {NEVER // 86_400_000_000_000_000} days that picoseconds count to"

LARGEST = 10**18
"""Bytes of the largest size: its bits still fit int64."""

_NUMBER = re.compile(r"^\s*([+-]?\d[\d_]*(?:\.\d*)?(?:[eE][+-]?\d{1,3})?|[+-]?\.\d+)\s*([A-Za-zµ/]*)\s*$")

_TIME = {
    "ps": 1,
    "ns": PS_PER_NS,
    "us": PS_PER_US,
    "µs": PS_PER_US,
    "ms": PS_PER_MS,
    "s": PS_PER_S,
    "min": 60 * PS_PER_S,
    "h": 3600 * PS_PER_S,
    "d": 86_400 * PS_PER_S,
}
_SIZE = {
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
}
_RATE = {
    "bps": 1,
    "kbps": 10**3,
    "mbps": 10**6,
    "gbps": 10**9,
    "tbps": 10**12,
    "bit/s": 1,
    "kbit/s": 10**3,
    "mbit/s": 10**6,
    "gbit/s": 10**9,
    "tbit/s": 10**12,
}
# Byte rates keep their capital B, so that Gb/s and GB/s are never confused.
_BYTE_RATE = {
    "B/s": 8,
    "kB/s": 8 * 10**3,
    "KB/s": 8 * 10**3,
    "MB/s": 8 * 10**6,
    "GB/s": 8 * 10**9,
    "TB/s": 8 * 10**12,
    "KiB/s": 8 * 2**10,
    "MiB/s": 8 * 2**20,
    "GiB/s": 8 * 2**30,
    "TiB/s": 8 * 2**40,
    "b/s": 1,
    "kb/s": 10**3,
    "Mb/s": 10**6,
    "Gb/s": 10**9,
    "Tb/s": 10**12,
}


def _split(text: str, what: str, example: str) -> tuple[Fraction, str]:
    match = _NUMBER.match(text)
    if match is None:
        raise ValueError(f"{text!r} is not a {what}; write it as in {example}")
    return Fraction(match.group(1).replace("_", "")), match.group(2)


def parse_time(value: str | int | float) -> int:
    """Picoseconds of simulated time from ``"1.5us"``; a bare 0 is zero, any other bare number lacks its unit.

    Raises
    ------
    ValueError
        Unknown or missing unit, finer than a picosecond, or longer than 53 days.
    """
    exact = parse_span(value)
    if abs(exact) >= NEVER:
        raise ValueError(f"{value!r} is longer than the 53 days that picoseconds count to")
    return exact


def parse_span(value: str | int | float) -> int:
    """The same, however long: of times that no simulation has to reach.

    Raises
    ------
    ValueError
        Unknown or missing unit, or finer than a picosecond.
    """
    exact = _picoseconds(value)
    if exact.denominator != 1:
        raise ValueError(f"{value!r} is finer than a picosecond")
    return int(exact)


def parse_measured(value: str | int | float) -> float:
    """Seconds of a time that was measured, with as many digits as it was written down with.

    Raises
    ------
    ValueError
        Unknown or missing unit.
    """
    return float(_picoseconds(value) / PS_PER_S)


def _picoseconds(value: str | int | float) -> Fraction:
    number, unit = _split(str(value), "time", "'10us' or '1.5ms'")
    if number == 0 and not unit:
        return Fraction(0)
    if unit not in _TIME:
        raise ValueError(f"{value!r} needs a time unit (ps, ns, us, ms, s, min, h, d), as in '10us'")
    return number * _TIME[unit]


def parse_size(value: str | int | float) -> int:
    """Bytes from ``"64MiB"``, ``"25MB"`` or a bare whole number of bytes.

    Raises
    ------
    ValueError
        Unknown unit, not a whole number of bytes, or above :data:`LARGEST`.
    """
    number, unit = _split(str(value), "size", "'64MiB' or '25MB'")
    scale = 1 if not unit else _SIZE.get(unit.lower())
    if scale is None:
        raise ValueError(f"{value!r} needs a size unit (B, kB, MB, GB, KiB, MiB, GiB), as in '64MiB'")
    exact = number * scale
    if exact.denominator != 1:
        raise ValueError(f"{value!r} is not a whole number of bytes")
    if abs(exact) > LARGEST:
        raise ValueError(f"{value!r} is more than an exabyte (1e18 bytes)")
    return int(exact)


def parse_rate(value: str | int | float) -> float:
    """Bits per second from ``"100Gbps"``, ``"50GB/s"`` or ``"50GiB/s"``.

    Raises
    ------
    ValueError
        Unknown or missing unit, or not above zero.
    """
    number, unit = _split(str(value), "rate", "'100Gbps' or '50GB/s'")
    scale = _BYTE_RATE.get(unit) or _RATE.get(unit.lower())
    if scale is None:
        bits = f"{unit}bps"
        meant = f"; did you mean '{value}bps'?" if unit and bits.lower() in _RATE else ", as in '100Gbps'"
        raise ValueError(f"{value!r} needs a rate unit (Gbps, GB/s, GiB/s ...){meant}")
    if number <= 0:
        raise ValueError(f"{value!r} is not a rate above zero")
    if number * scale > 10**30:
        raise ValueError(f"{value!r} is more than any link carries")
    return float(number * scale)


def format_time(ps: int) -> str:
    """``1.234 ms``: four significant digits in the largest unit that keeps the number above one."""
    for unit, scale in (("s", PS_PER_S), ("ms", PS_PER_MS), ("us", PS_PER_US), ("ns", PS_PER_NS)):
        if abs(ps) >= scale:
            return f"{ps / scale:.4g} {unit}" if abs(ps) < 1000 * scale else f"{ps / scale:.0f} {unit}"
    return f"{ps} ps"


def format_span(ps: int) -> str:
    """The same, however long: ``54 d``, ``12.5 min``."""
    for unit, scale in (("d", 86_400), ("h", 3600), ("min", 60)):
        if ps >= scale * PS_PER_S:
            return f"{ps / (scale * PS_PER_S):.4g} {unit}"
    return format_time(ps)


def format_size(size_bytes: float) -> str:
    """``64 MiB`` or ``25 MB``: binary units where they are whole and below 1,024, decimal ones elsewhere."""
    for unit, scale in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if scale <= size_bytes < 1024 * scale and size_bytes % scale == 0:
            return f"{int(size_bytes) // scale} {unit}"
    for unit, scale in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size_bytes >= scale:
            return f"{size_bytes / scale:.4g} {unit}"
    return f"{size_bytes:.4g} B"


def format_memory(size_bytes: float) -> str:
    """``76 GiB`` or ``77.4 GiB``: always binary, as GPUs' memory is sold, so that amounts can be compared."""
    for unit, scale in (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size_bytes >= scale:
            return f"{size_bytes / scale:.4g} {unit}"
    return f"{size_bytes:.4g} B"


def format_rate(bps: float) -> str:
    """``98.7 Gbps``."""
    for unit, scale in (("Tbps", 1e12), ("Gbps", 1e9), ("Mbps", 1e6), ("kbps", 1e3)):
        if bps >= scale:
            return f"{bps / scale:.4g} {unit}"
    return f"{bps:.4g} bps"
