"""Times that take longer or shorter: whole numbers of millionths, rounded down, exactly."""

from __future__ import annotations

import numpy as np

from cosim.workload.table import I64

MILLION = 1_000_000


def scaled(duration_ps: I64, millionths: int) -> I64:
    """``duration_ps * millionths // 1_000_000`` of each, whose product need not fit int64.

    Raises
    ------
    OverflowError
        What comes out doesn't fit.
    """
    whole, rest = np.divmod(duration_ps, MILLION)
    if millionths < 1 << 42 and int(whole.max(initial=0)) * millionths < 1 << 62:
        return np.asarray(whole * millionths + rest * millionths // MILLION, np.int64)
    return np.array([one * millionths // MILLION for one in duration_ps.tolist()], np.int64)
