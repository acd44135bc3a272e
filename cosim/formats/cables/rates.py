"""Rates as lists of cables write them: 400G, 400GbE, 4xHDR, 400gbase-x-qsfpdd, a number below `Gbps`."""

from __future__ import annotations

import re

from cosim.units import parse_rate, parse_time

_LANE_GBPS = {
    "SDR": 2.0, "DDR": 4.0, "QDR": 8.0, "FDR10": 10.0, "FDR": 13.64, "EDR": 25.0, "HDR": 50.0, "NDR": 100.0,
    "XDR": 200.0,
}  # fmt: skip
"""Data that a lane of InfiniBand carries: of SDR to QDR eight bits in ten."""
_INFINIBAND = re.compile(r"\b(1|2|4|8|12)x[ -]?(FDR10|[SDQFEHNX]DR)\b", re.IGNORECASE)
_ETHERNET = re.compile(r"([0-9]{1,4}(?:\.[0-9]{1,3})?) ?([GgMTt])(?:bps|bit|bE|be|BE|b|E|e)?")
_BASE = re.compile(r"(?:^|[^0-9])([0-9]{1,4}(?:\.[0-9])?)(G|M)?BASE", re.IGNORECASE)
_SCALE = {"m": 1e6, "g": 1e9, "t": 1e12}
_UNITS = (
    ("gbps", 1e9),
    ("gbit", 1e9),
    ("gb s", 1e9),
    ("mbps", 1e6),
    ("mbit", 1e6),
    ("kbps", 1e3),
    ("bps", 1.0),
)


def rate_of(text: str, name: str = "") -> float | None:
    """Bits per second of a rate or a kind of interface; None: it says none. ``name`` is its column's, which
    may have the unit of a bare number.

    Raises
    ------
    ValueError
        A number without a unit, or one that isn't above zero.
    """
    text = text.strip()
    if not text:
        return None
    if (found := port_rate(text)) is not None:
        return found
    if re.fullmatch(r"[0-9]{1,20}(\.[0-9]{1,9})?(e[+-]?[0-9]{1,2})?", text, re.IGNORECASE):
        unit = next((scale for unit, scale in _UNITS if unit in name), None)
        if unit is None:
            raise ValueError(f"{text!r} needs a unit, as in 400Gbps")
        value = float(text) * unit
        if value <= 0:
            raise ValueError(f"{text!r} is no rate above zero")
        return value
    if ethernet := _ETHERNET.fullmatch(text):
        return float(ethernet[1]) * _SCALE[ethernet[2].lower()]
    return parse_rate(text)


def port_rate(text: str) -> float | None:
    """Bits per second of a kind of port that a text names, as 4xHDR or 400gbase-x; None: it names none."""
    if found := _INFINIBAND.search(text):
        return int(found[1]) * _LANE_GBPS[found[2].upper()] * 1e9
    if found := _BASE.search(text):
        return float(found[1]) * _SCALE[(found[2] or "m").lower()] or None
    return None


def latency_of(text: str, name: str = "") -> int | None:
    """Picoseconds; None: it says none. ``name`` as of :func:`rate_of`.

    Raises
    ------
    ValueError
        A number without a unit.
    """
    text = text.strip()
    if not text:
        return None
    if re.fullmatch(r"[0-9]{1,12}(\.[0-9]{1,9})?", text):
        unit = next((unit for unit in ("ps", "ns", "us", "ms") if re.search(rf"\b{unit}\b", name)), None)
        if unit is None and float(text) > 0:
            raise ValueError(f"{text!r} needs a unit, as in 500ns")
        text += unit or "ns"
    return parse_time(text)


_MOST_COUNT = 4096


def times_of(text: str) -> int:
    """How many cables a line stands for: 1 where it says nothing.

    Raises
    ------
    ValueError
        No number from 1 to 4096.
    """
    text = text.strip() or "1"
    times = int(text) if text.isascii() and text.isdigit() and len(text) < 6 else 0
    if not 1 <= times <= _MOST_COUNT:
        raise ValueError(f"{text[:40]!r} cables; a whole number from 1 to {_MOST_COUNT}")
    return times
