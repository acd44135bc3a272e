"""Lines of a flow list as columns, where they are written as nearly all are: six numbers."""

from __future__ import annotations

from decimal import Context as Precision
from decimal import Decimal, InvalidOperation

import numpy as np

from cosim.files.text import MOST_RANKS
from cosim.kernel import kernel
from cosim.network.flows import I64
from cosim.units import NEVER

_EXACT = Precision(prec=60)
"""Digits enough for any time of less than 40 characters."""


def plain_flows(block: bytes) -> I64 | None:
    """int64[4, flows]: ``src``, ``dst``, ``size``, ``start`` (ps) of whole lines of a flow list; None where
    they are written in another way, or can't be meant, which only a look at each line can tell.
    """
    flows = np.empty((4, block.count(b"\n") + 1), np.int64)
    count = kernel.read_flow_list(len(block), np.frombuffer(block, np.int8), MOST_RANKS, *flows)
    if count <= 0:
        return None
    flows = flows[:, :count]
    start = flows[3]
    for k in np.flatnonzero(start < 0).tolist():
        begin = kernel.NONE - 1 - int(start[k])
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
