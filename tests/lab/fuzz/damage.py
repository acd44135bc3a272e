"""Bytes with something wrong."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from random import Random
from typing import Any

WORDS = (
    b"-1", b"0", b"1e9", b".5", b"nan", b"inf", b"-inf", b"", b"\x00", b"\xff\xfe", b'"', b"{", b"}", b"[[",
    b"]", b"\n", b",", b"*a", b"&a ", b": ", b"\n- ", b"!!x ", b"~", b"\t", b"</", b"->", b"2020-99-99",
    b"9" * 12, b"9" * 21, b"9" * 5000, b"1e999999999", b"4294967296", b"65536", b"2147483647", b"rank 0 {",
    b"trigger", b"requires", b"num_ranks", b"Nodes", b"\\ud800", b"\x1b[2J", b"<<: *x", b"0x_", b"[" * 200,
)  # fmt: skip


def damaged(draw: Random, bodies: Sequence[bytes], most: int = 3) -> bytes:
    """One of some files, with up to ``most`` things wrong; parts of another one may have come in."""
    edits = [(draw.randrange(9), draw.randrange(1 << 20), draw.randrange(1 << 20))]
    while len(edits) < most and draw.random() < 0.4:
        edits.append((draw.randrange(9), draw.randrange(1 << 20), draw.randrange(1 << 20)))
    return edited(draw.choice(bodies), edits, draw.choice(bodies))


def edited(body: bytes, edits: Sequence[tuple[int, int, int]], other: bytes) -> bytes:
    """A file after some edits; parts of ``other`` may come in."""
    made = bytearray(body)
    for what, where, much in edits:
        at = where % (len(made) + 1)
        to = min(len(made), at + 1 + much % 64)
        if what == 0 and at < len(made):
            made[at] ^= 1 << much % 8
        elif what == 1:
            made[at:to] = b""
        elif what == 2:
            made[at:at] = made[at:to] * (1, 2, 50)[much % 3]
        elif what == 3:
            made[at:to] = WORDS[much % len(WORDS)]
        elif what == 4:
            made[at:] = b""
        elif what == 5:
            made[at:at] = WORDS[much % len(WORDS)]
        elif what == 6:
            made = _lines(made, where, much)
        elif what == 7:
            made[at:to] = other[where % (len(other) + 1) :][: much % 128]
        elif digits := [place for place, byte in enumerate(made) if 48 <= byte <= 57]:
            at = digits[where % len(digits)]
            made[at : at + 1] = WORDS[much % len(WORDS)]
    return bytes(made)


def _lines(body: bytearray, where: int, much: int) -> bytearray:
    lines = bytes(body).split(b"\n")
    one, two = where % len(lines), much % len(lines)
    if much % 3 == 0:
        lines[one], lines[two] = lines[two], lines[one]
    elif much % 3 == 1:
        lines.insert(one, lines[two])
    else:
        del lines[one]
    return bytearray(b"\n".join(lines))


def changed(draw: Random, value: Any) -> Any:
    """A JSON value in which something, anywhere, is another value, twice there, or gone."""
    value = copy.deepcopy(value)
    inside: Any = value
    for _ in range(12):
        keys = list(inside) if isinstance(inside, dict) else range(len(inside))
        if not keys:
            return value
        key = draw.choice(keys)
        if not isinstance(inside[key], (dict, list)) or not inside[key] or draw.random() < 0.15:
            break
        inside = inside[key]
    if draw.random() < 0.3:
        del inside[key]
    elif isinstance(inside, list) and draw.random() < 0.3:
        inside.append(copy.deepcopy(inside[key]))
    else:
        inside[key] = copy.deepcopy(draw.choice(VALUES))
    return value


VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 1, 2**31, 2**63, -(2**70), 1e308, float("nan"), "", "x", "-1", "9" * 30, "cuda:0",
    "ProfilerStep#3", "nccl:all_reduce", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "\ud800", [], {}, [[]],
    [0, 1, 1], {"ranks": [0, 9]}, [{}], ["...", 3],
)  # fmt: skip
"""What may stand somewhere in a trace instead of what should."""
