"""Lines of a flow list as columns, compiled, where they are written as nearly all are: six numbers."""

from __future__ import annotations

from decimal import Context as Precision
from decimal import Decimal, InvalidOperation

import numpy as np
from numpy.typing import NDArray

from cosim.files.text import MOST_RANKS
from cosim.network.flows import I64
from cosim.network.jit import compiled, inlined
from cosim.units import NEVER

_TAB, _NEWLINE, _RETURN, _SPACE, _ZERO, _NINE = b"\t\n\r 09"
_DOT, _SMALL_E, _LARGE_E, _PLUS, _MINUS = b".eE+-"
_WHOLE = 5
"""Words of a line that are whole numbers; the last one is a time."""
_DECIMALS = 12
_MOST_DIGITS = 18
"""So many are an int64, whatever they are."""
_NONE = -1
_EXACT = Precision(prec=60)
"""Digits enough for any time of less than 40 characters."""


@inlined
def _behind_blanks(text: NDArray[np.int8], at: int) -> int:
    """Where what is no blank begins."""
    while at < len(text) and (text[at] == _SPACE or text[at] == _TAB):
        at += 1
    return at


@compiled
def _read(text: NDArray[np.int8], flows: I64) -> int:
    """Read lines into ``src``, ``dst``, ``size``, ``start`` (ps) of flows; how many, NONE: not all are plain,
    or can be meant. A time that has an exponent, or more digits than are sure to be an int64 of picoseconds,
    is -1 minus where it stands, and NONE - 1 minus their number is returned.
    """
    end = len(text)
    at = 0
    count = 0
    odd = False
    while at < end:
        for word in range(_WHOLE):
            begin = _behind_blanks(text, at)
            at = begin
            value = 0
            while at < end and _ZERO <= text[at] <= _NINE:
                value = 10 * value + int(text[at]) - _ZERO  # too many digits are refused below
                at += 1
            if not 0 < at - begin <= _MOST_DIGITS or (at < end and text[at] > _SPACE):
                return _NONE
            if word == 0:
                flows[0, count] = value
            elif word == 1:
                flows[1, count] = value
            elif word == 4:
                flows[2, count] = value
        begin = _behind_blanks(text, at)
        at = begin
        value = 0
        digits = 0
        decimals = _NONE
        plain = True
        while at < end and text[at] > _SPACE:
            one = int(text[at])
            if _ZERO <= one <= _NINE:
                digits += 1
                if digits <= _MOST_DIGITS:
                    value = 10 * value + one - _ZERO
                if decimals != _NONE:
                    decimals += 1
            elif one == _DOT and decimals == _NONE:
                decimals = 0
            elif one in (_DOT, _SMALL_E, _LARGE_E, _PLUS, _MINUS):
                plain = False
            else:
                return _NONE
            at += 1
        if at == begin:
            return _NONE
        behind = max(decimals, 0)
        if not plain or behind > _DECIMALS or not 0 < digits <= behind + _MOST_DIGITS - _DECIMALS:
            value = -1 - begin
            odd = True
        else:
            for _ in range(_DECIMALS - behind):
                value *= 10
            if value > NEVER:
                return _NONE
        flows[3, count] = value
        at = _behind_blanks(text, at)
        if at + 1 < end and text[at] == _RETURN and text[at + 1] == _NEWLINE:
            at += 1
        if at < end and text[at] != _NEWLINE:
            return _NONE
        src = flows[0, count]
        dst = flows[1, count]
        if src == dst or max(src, dst) >= MOST_RANKS or flows[2, count] > NEVER:
            return _NONE
        at += 1
        count += 1
    return _NONE - 1 - count if odd else count


def plain_flows(block: bytes) -> I64 | None:
    """int64[4, flows]: ``src``, ``dst``, ``size``, ``start`` (ps) of whole lines of a flow list; None where
    they are written in another way, or can't be meant, which only a look at each line can tell.
    """
    flows = np.empty((4, block.count(b"\n") + 1), np.int64)
    count = int(_read(np.frombuffer(bytearray(block), np.int8), flows))
    if count in (_NONE, 0):
        return None
    if count > 0:
        return flows[:, :count]
    flows = flows[:, : _NONE - 1 - count]
    start = flows[3]
    for k in np.flatnonzero(start < 0).tolist():
        begin = -1 - int(start[k])
        exact = picoseconds(block[begin : begin + 64].split(None, 1)[0].decode())
        if not 0 <= exact <= NEVER:
            return None
        start[k] = round(exact)
    return flows


def picoseconds(text: str) -> Decimal:
    """A time in seconds, exactly; -1 for what is none, nor is a large exponent: 1e999999999 would take for
    ever.
    """
    try:
        value = Decimal(text) if len(text) < 40 else Decimal(-1)
    except InvalidOperation:
        return Decimal(-1)
    return value.scaleb(12, _EXACT) if value.is_finite() and abs(value.adjusted()) < 30 else Decimal(-1)
