"""CUBIC: after a cut the window follows a cubic of time towards where it was, and on from there.

W(t) = C (t - K)^3 + W_max packets, K = cbrt(W_max (1 - beta) / C), never below what a Reno-like sender would
have. Before the first cut a window grows by a twentieth each round trip, as Linux and ns-3 have it, who know
of no W_max. Slow start ends at a loss or mark, where acknowledgements come in a row for half the least round
trip, and so where the round trip grew (HyStart), or where the window is twice what is on its way.

Source: RFC 9438; S. Ha, I. Rhee, L. Xu, doi:10.1145/1400097.1400105; HyStart:
doi:10.1016/j.comnet.2011.01.014. Defaults are theirs: C = 0.4, beta = 0.7, fast convergence. The cube root
is Newton's, with a fixed number of steps. Growth counts bytes; windows grow and losses are known of as in
:mod:`~cosim.network.congestion.controls.newreno`. Not modelled: HyStart's delay rule (it needs 4 ms of
queue).

ns-3 3.37's CUBIC is ``friendly: false, hystart_train: 1``.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from cosim.network.calendar import Records
from cosim.network.congestion.contract import Control
from cosim.network.flows import F64
from cosim.network.jit import compiled, once

_THRESHOLD, _CUT, _MOST, _TIME, _RENO, _TOP, _LEAST_RTT = range(7)
_NO_THRESHOLD = 1e18  # bytes, and picoseconds: more than any window, or round trip
_HYSTART_LEAST = 16.0  # packets; below, Linux's HyStart doesn't look either
_UNTRIED = 20.0
"""Before the first cut at least a packet for so many acknowledged: 5 % a round trip, as in Linux and ns-3."""
_NEWTON_STEPS = 80  # a fixed number: the same result on any machine, where a library's root may differ


@compiled
def cube_root(x: float) -> float:
    """The cube root of x >= 0."""
    if x <= 0.0:
        return 0.0
    y = max(x, 1.0)
    for _ in range(_NEWTON_STEPS):
        y = (2.0 * y + x / (y * y)) / 3.0
    return y


@once
def _begin(row: Records, state: F64, c: int, p: F64) -> None:
    """A connection's first window, of a sender that knows nothing of the path."""
    row.window = p[4] * row.mss
    state[c, _THRESHOLD] = _NO_THRESHOLD
    for k in range(_CUT, _TOP + 1):
        state[c, k] = 0.0
    state[c, _LEAST_RTT] = _NO_THRESHOLD


@once
def _time_out(row: Records, state: F64, c: int, p: F64) -> None:
    """Nothing came back: slow start anew from one packet, to where the window would have been cut to."""
    state[c, _THRESHOLD] = max(p[1] * row.window, 2.0 * row.mss)
    state[c, _CUT] = 0.0
    state[c, _TOP] = 0.0
    state[c, _LEAST_RTT] = _NO_THRESHOLD
    row.window = row.mss


@once
def _cut(row: Records, state: F64, c: int, p: F64) -> None:
    """The window after a loss or mark, and the cubic from there on (RFC 9438, 4.6 and 4.7)."""
    state[c, _CUT] = 1.0
    packets = row.window / row.mss
    most = packets
    # Fast convergence: who is cut below where it was cut before gives way to a sender that came later.
    if p[2] != 0.0 and packets < state[c, _TOP]:
        most = packets * (1.0 + p[1]) / 2.0
    state[c, _TOP] = packets
    state[c, _MOST] = most
    packets = max(p[1] * packets, 2.0)
    state[c, _THRESHOLD] = packets * row.mss
    state[c, _TIME] = 0.0
    state[c, _RENO] = packets
    row.window = packets * row.mss


@once
def _may_end_slow_start(row: Records, state: F64, c: int, p: F64) -> None:
    """HyStart: the cubic begins here where acknowledgements come in a row for too long, or the window is
    twice what is on its way.
    """
    window = row.window
    if window >= state[c, _THRESHOLD] or p[3] == 0.0 or window < _HYSTART_LEAST * row.mss:
        return
    least = state[c, _LEAST_RTT]
    # Acknowledgements of a round come over at most a round trip; all of it where there is a queue.
    train = row.rtt if row.rtt > least else min(window * 8e12 / row.line, row.rtt)
    if train > p[3] * least or window >= 2.0 * row.flight:
        state[c, _THRESHOLD] = window
        state[c, _MOST] = window / row.mss
        state[c, _TIME] = 0.0
        state[c, _RENO] = window / row.mss


@once
def _avoid_congestion(row: Records, state: F64, c: int, p: F64) -> None:
    """Grow along the cubic, or as Reno would where that is more (RFC 9438, 4.2 to 4.5)."""
    packets = row.window / row.mss
    state[c, _TIME] += row.elapsed * 1e-12
    root = cube_root(max(state[c, _MOST] - state[c, _THRESHOLD] / row.mss, 0.0) / p[0])
    t = state[c, _TIME] + row.rtt * 1e-12 - root
    # Within a round trip it grows by half at most, however far the cubic has gone meanwhile.
    target = min(max(p[0] * t * t * t + state[c, _MOST], packets), 1.5 * packets)
    acked = min(row.acked / row.window, 1.0)
    grown = packets + row.gain * (target - packets) * acked
    if state[c, _TOP] == 0.0:
        grown = max(grown, packets * (1.0 + row.gain * acked / _UNTRIED))
    if p[5] != 0.0:
        # Reno's slope for this beta, so that both get the same; once it is where the cut was, Reno's own.
        slope = 3.0 * (1.0 - p[1]) / (1.0 + p[1])
        if state[c, _RENO] >= state[c, _MOST]:
            slope = 1.0
        state[c, _RENO] += row.gain * slope * acked
        grown = max(grown, state[c, _RENO])
    row.window = grown * row.mss


def cubic(n: int, rows: Records, telemetry: Records, state: F64, p: F64) -> None:
    """``p``: C, beta, fast convergence, HyStart's share (0: off), first window in packets, friendly."""
    for i in range(n):
        row = rows[i]
        c = row.conn
        if row.first != 0.0:
            _begin(row, state, c, p)
            continue
        if row.timeout != 0.0:
            _time_out(row, state, c, p)
            continue
        if (row.lost > 0.0 or row.marked > 0.0) and state[c, _CUT] == 0.0:
            _cut(row, state, c, p)
            continue
        # The round after a cut is of what was sent before it: it says nothing of the window that is there.
        was_cut = state[c, _CUT] != 0.0
        state[c, _CUT] = 0.0
        state[c, _LEAST_RTT] = min(state[c, _LEAST_RTT], row.rtt)
        if was_cut:
            continue
        _may_end_slow_start(row, state, c, p)
        if row.window < state[c, _THRESHOLD]:
            if row.window < 2.0 * row.flight:
                row.window = min(row.window + row.acked, state[c, _THRESHOLD])
                row.slow_start = 1.0
        elif row.limited != 0.0:
            _avoid_congestion(row, state, c, p)


class Cubic(Control):
    """TCP CUBIC (RFC 9438): the window is a cubic of the time since the last loss or mark"""

    state: ClassVar[dict[str, float]] = {
        "threshold": _NO_THRESHOLD,
        "cut": 0.0,
        "most": 0.0,
        "time": 0.0,
        "reno": 0.0,
        "top": 0.0,
        "least_rtt": _NO_THRESHOLD,
    }
    settles: ClassVar[bool] = True
    scales_itself: ClassVar[bool] = True
    acks_wait: ClassVar[bool] = True
    kernel = cubic

    c: float = Field(0.4, gt=0, description="steepness, packets / s^3")
    beta: float = Field(0.7, gt=0, lt=1, description="what a loss or mark leaves of the window")
    fast_convergence: bool = Field(True, description="give way to newcomers: aim lower where the top fell")
    hystart: bool = Field(True, description="leave slow start before it overshoots")
    hystart_train: float = Field(
        0.5,
        gt=0,
        le=1,
        description="slow start ends where acknowledgements come in a row for so much of a round trip",
    )
    friendly: bool = Field(True, description="never below what a Reno-like sender would have")
    initial_window: float = Field(10.0, gt=0, description="first window, packets")

    def parameters(self) -> list[float]:
        """See the kernel."""
        train = self.hystart_train if self.hystart else 0.0
        return [
            self.c,
            self.beta,
            float(self.fast_convergence),
            train,
            self.initial_window,
            float(self.friendly),
        ]
