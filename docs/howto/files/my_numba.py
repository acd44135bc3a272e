"""The control of my_control.py, compiled by numba."""

from my_compiled import AimdInC
from numba import carray, cfunc

from cosim.plugins import Control


@cfunc(Control.numba_signature())
def aimd(n, rows, telemetry, state, parameters):
    packets, keep = parameters[0], parameters[1]
    for row in carray(rows, n):
        cut = 8 * row.conn
        if row.first:  # the connection begins
            row.window = row.line * row.base_rtt / 8e12
            state[cut] = 0.0
            continue
        hit = (row.marked > 0 or row.lost > 0) and state[cut] == 0.0
        if hit:
            row.window = max(keep * row.window, row.mss)
        else:
            row.window += packets * row.mss * row.limited
        state[cut] = 1.0 if hit else 0.0


class AimdInNumba(AimdInC):
    """The same by numba"""

    kernel = aimd
