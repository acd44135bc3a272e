"""Lines of a flow list as columns, a block at once, where they are written as nearly all are: six numbers."""

from __future__ import annotations

from decimal import Context as Precision
from decimal import Decimal, InvalidOperation

import numpy as np
from numpy.typing import NDArray

from cosim.files.text import MOST_RANKS
from cosim.units import NEVER
from cosim.workload.table import I64

_DIGIT, _GAP, _DOT, _EXPONENT, _OTHER = range(5)
_KIND = np.full(256, _OTHER, np.uint8)
_KIND[list(b"0123456789")] = _DIGIT
_KIND[list(b" \t\n")] = _GAP
_KIND[list(b".")] = _DOT
_KIND[list(b"eE+-")] = _EXPONENT
_NO_EXPONENTS = bytes.maketrans(b"eE+-", b"0000")
_WORDS, _DECIMALS = 6, 12
_MOST_DIGITS = 18
"""So many are an int64, whatever they are."""
_EXACT = Precision(prec=60)
"""Digits enough for any time of less than 40 characters."""


def plain_flows(block: bytes) -> I64 | None:
    """int64[4, flows]: ``src``, ``dst``, ``size``, ``start`` (ps) of whole lines of a flow list; None where
    they are written in another way, or can't be meant, which only a look at each line can tell.
    """
    if b"\r" in block:
        block = block.replace(b"\r\n", b"\n")
    if not block.endswith(b"\n"):
        block += b"\n"
    text = np.frombuffer(block, np.uint8)
    kind, lines = _KIND[text], np.flatnonzero(text == ord("\n"))
    edges = np.flatnonzero(np.diff(kind == _GAP, prepend=True))
    first, end = edges[0::2], edges[1::2]
    if len(first) != _WORDS * len(lines) or int(kind.max()) == _OTHER:
        return None
    first, end = first.reshape(-1, _WORDS), end.reshape(-1, _WORDS)
    # Six words a line: the first of each behind the end of the line before, the last of each before its own.
    if (first[1:, 0] < lines[:-1]).any() or (first[:, -1] > lines).any():
        return None
    signs = np.flatnonzero(kind > _GAP)
    row = np.searchsorted(lines, signs)
    numbers = np.fromstring(block.translate(_NO_EXPONENTS, b"."), np.int64, sep=" ")
    in_times = (signs >= first[row, -1]).all()
    if not in_times or numbers.size != first.size or int((end - first)[:, :-1].max()) > _MOST_DIGITS:
        return None
    src, dst, _, _, size, digits = numbers.reshape(-1, _WORDS).T
    start = _times(block, digits, first[:, -1], end[:, -1], signs, row, kind[signs] == _DOT)
    right = (
        max(int(src.max()), int(dst.max())) < MOST_RANKS
        and not (src == dst).any()
        and int(size.max()) <= NEVER
        and 0 <= int(start.min()) <= int(start.max()) <= NEVER
    )
    return np.stack([src, dst, size, start]) if right else None


def _times(
    block: bytes, digits: I64, first: I64, end: I64, signs: I64, row: I64, is_dot: NDArray[np.bool_]
) -> I64:
    """int64[flows]: picoseconds, -1 for what is none. The word of row k goes from ``first[k]`` up to
    ``end[k]``, its digits are the number ``digits[k]``; what else is in words is at ``signs``, of ``row``.
    """
    behind = np.zeros(len(digits), np.int64)  # the dot, that with it
    behind[row[is_dot]] = end[row[is_dot]] - signs[is_dot]
    decimals = np.maximum(behind - 1, 0)
    start: I64 = digits * 10 ** np.maximum(_DECIMALS - decimals, 0)
    # What has an exponent, or more digits than are sure to be an int64 of picoseconds, is read by itself.
    odd = (np.bincount(row, minlength=len(digits)) > 1) | (decimals > _DECIMALS)
    odd |= end - first - behind > _MOST_DIGITS - _DECIMALS
    odd[row[~is_dot]] = True
    for k in np.flatnonzero(odd).tolist():
        exact = picoseconds(block[first[k] : end[k]].decode())
        start[k] = round(exact) if 0 <= exact <= NEVER else -1
    return start


def picoseconds(text: str) -> Decimal:
    """A time in seconds, exactly; -1 for what is none, nor is a large exponent: 1e999999999 would take for
    ever.
    """
    try:
        value = Decimal(text) if len(text) < 40 else Decimal(-1)
    except InvalidOperation:
        return Decimal(-1)
    return value.scaleb(12, _EXACT) if value.is_finite() and abs(value.adjusted()) < 30 else Decimal(-1)
