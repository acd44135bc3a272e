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

from cosim.network.congestion.contract import TCP_HEADER_BYTES, Control

_NO_THRESHOLD = 1e18  # bytes, and picoseconds: more than any window, or round trip


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
    header_bytes: ClassVar[int] = TCP_HEADER_BYTES
    kernel = "update_cubic"

    c: float = Field(0.4, gt=0, description="steepness, packets / s^3")
    beta: float = Field(0.7, gt=0, lt=1, description="what a loss or mark leaves of the window")
    hystart_train: float = Field(
        0.5,
        gt=0,
        le=1,
        description="slow start ends where acknowledgements come in a row for so much of a round trip",
    )
    friendly: bool = Field(True, description="never below what a Reno-like sender would have")
    initial_window: float = Field(10.0, gt=0, description="first window, packets")

    def parameters(self) -> list[float]:
        """See controls.c."""
        return [
            self.c,
            self.beta,
            1.0,  # fast convergence: aim lower where the top fell
            self.hystart_train,
            self.initial_window,
            float(self.friendly),
        ]
