"""CUBIC: after a cut the window follows a cubic of time towards where it was, and on from there.

W(t) = C (t - K)^3 + W_max packets, K = cbrt(W_max (1 - beta) / C), never below what a Reno-like sender would
have. Slow start ends at a loss or mark, or where its train of acknowledgements is half a round trip long
(HyStart).

Source: RFC 9438; S. Ha, I. Rhee, L. Xu, doi:10.1145/1400097.1400105; HyStart:
doi:10.1016/j.comnet.2011.01.014. Defaults are theirs: C = 0.4, beta = 0.7, fast convergence. The cube root is
Newton's, with a fixed number of steps. Not modelled: duplicate acknowledgements, retransmission timeouts,
HyStart's delay rule (it needs 4 ms of queue).
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from cosim.network.calendar import Records
from cosim.network.congestion.columns import WAITING_N, Fluid
from cosim.network.congestion.control import Control
from cosim.network.congestion.loop import ASK, run_congestion
from cosim.network.core import Core
from cosim.network.flows import F64
from cosim.network.jit import compiled

_THRESHOLD, _CUT, _MOST, _TIME, _RENO, _TOP = range(6)
_NO_THRESHOLD = 1e18
_HYSTART_LEAST = 16.0
_NEWTON_STEPS = 80


@compiled
def cube_root(x: float) -> float:
    """The cube root of x >= 0."""
    if x <= 0.0:
        return 0.0
    y = max(x, 1.0)
    for _ in range(_NEWTON_STEPS):
        y = (2.0 * y + x / (y * y)) / 3.0
    return y


@compiled
def cubic(n: int, rows: Records, telemetry: Records, state: F64, p: F64) -> None:
    """``p``: C, beta, fast convergence, HyStart, first window in packets."""
    for i in range(n):
        row = rows[i]
        c = row.conn
        if row.first != 0.0:
            row.window = p[4] * row.mss
            state[c, _THRESHOLD] = _NO_THRESHOLD
            for k in range(_CUT, _TOP + 1):
                state[c, k] = 0.0
            continue
        window = row.window
        packets = window / row.mss
        if (row.lost > 0.0 or row.marked > 0.0) and state[c, _CUT] == 0.0:
            state[c, _CUT] = 1.0
            most = packets
            if p[2] != 0.0 and packets < state[c, _TOP]:
                most = packets * (1.0 + p[1]) / 2.0
            state[c, _TOP] = packets
            state[c, _MOST] = most
            packets = max(p[1] * packets, 2.0)
            state[c, _THRESHOLD] = packets * row.mss
            state[c, _TIME] = 0.0
            state[c, _RENO] = packets
            row.window = packets * row.mss
            continue
        state[c, _CUT] = 0.0
        if row.limited == 0.0:
            continue
        if window < state[c, _THRESHOLD]:
            window = min(window + row.acked, state[c, _THRESHOLD])
            row.slow_start = 1.0
            row.window = window
            train = window * 8e12 / row.line
            if p[3] != 0.0 and window >= _HYSTART_LEAST * row.mss and train >= 0.5 * row.base_rtt:
                state[c, _THRESHOLD] = window
                state[c, _MOST] = window / row.mss
                state[c, _TIME] = 0.0
                state[c, _RENO] = window / row.mss
            continue
        state[c, _TIME] += row.elapsed * 1e-12
        root = cube_root(max(state[c, _MOST] - state[c, _THRESHOLD] / row.mss, 0.0) / p[0])
        t = state[c, _TIME] + row.rtt * 1e-12 - root
        target = min(max(p[0] * t * t * t + state[c, _MOST], packets), 1.5 * packets)
        acked = min(row.acked / window, 1.0)
        grow = 3.0 * (1.0 - p[1]) / (1.0 + p[1])
        if state[c, _RENO] >= state[c, _MOST]:
            grow = 1.0
        state[c, _RENO] += row.gain * grow * acked
        packets = max(packets + row.gain * (target - packets) * acked, state[c, _RENO])
        row.window = packets * row.mss


@compiled
def drive(core: Core, fluid: Fluid, parameters: F64, horizon: int) -> int:
    """The network's loop with this control in it."""
    while True:
        status = run_congestion(core, fluid, horizon)
        if status != ASK:
            return int(status)
        cubic(core.meta[WAITING_N], fluid.rows, fluid.telemetry, fluid.state, parameters)


class Cubic(Control):
    """TCP CUBIC (RFC 9438): the window is a cubic of the time since the last loss or mark"""

    state: ClassVar[dict[str, float]] = {
        "threshold": _NO_THRESHOLD,
        "cut": 0.0,
        "most": 0.0,
        "time": 0.0,
        "reno": 0.0,
        "top": 0.0,
    }
    settles: ClassVar[bool] = True
    scales_itself: ClassVar[bool] = True
    kernel = cubic
    driver = drive

    c: float = Field(0.4, gt=0, description="steepness, packets / s^3")
    beta: float = Field(0.7, gt=0, lt=1, description="what a loss or mark leaves of the window")
    fast_convergence: bool = Field(True, description="give way to newcomers: aim lower where the top fell")
    hystart: bool = Field(True, description="leave slow start before it overshoots")
    initial_window: float = Field(10.0, gt=0, description="first window, packets")

    def parameters(self) -> list[float]:
        """See the kernel."""
        return [self.c, self.beta, float(self.fast_convergence), float(self.hystart), self.initial_window]
