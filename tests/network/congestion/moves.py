"""Parameters that move results the way papers say: what changes, what is looked at, and which way it goes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cosim.network.congestion.contract import Control
from cosim.network.congestion.controls.cubic import Cubic
from cosim.network.congestion.controls.dcqcn import Dcqcn
from cosim.network.congestion.controls.dctcp import Dctcp
from cosim.network.congestion.controls.fixed import Fixed
from cosim.network.congestion.controls.hpcc import Hpcc
from cosim.network.congestion.controls.newreno import NewReno
from cosim.network.congestion.controls.swift import Swift
from cosim.network.congestion.controls.timely import Timely
from cosim.network.congestion.fabric import PortSettings
from tests.network.congestion.worlds import Seen, star, watch

MS, US = 10**9, 10**6


@dataclass(frozen=True)
class Move:
    """A parameter at two values; ``measure`` is larger with the second one. ``why``: who says so."""

    control: type[Control]
    parameter: str
    values: tuple[object, object]
    quantity: str
    measure: Callable[[Control], float]
    why: str

    def results(self) -> tuple[float, float]:
        """What is measured with either value."""
        base = {"patched": True} if self.parameter.startswith("patched ") else {}
        name = self.parameter.removeprefix("patched ")
        first, second = (self.measure(self.control(**base, **{name: value})) for value in self.values)
        return first, second


def long_flows(
    control: Control, flows: int = 4, rate: float = 100e9, ms: float = 3, mtu: int = 9_000
) -> Seen:
    """Flows without an end into one port."""
    return watch(
        star(flows, rate, US),
        control,
        [(k, flows, 10**10) for k in range(flows)],
        PortSettings(headers=False, mtu_bytes=mtu),
        until_ps=int(ms * MS),
        step_ps=10 * US,
    )


def queue_kb(
    flows: int = 4, rate: float = 100e9, ms: float = 3, mtu: int = 9_000
) -> Callable[[Control], float]:
    """The mean queue in the second half, kB."""

    def measure(control: Control) -> float:
        seen = long_flows(control, flows, rate, ms, mtu)
        return float(seen.queue[len(seen.queue) // 2 :, 0].mean()) / 1e3

    return measure


def swing_kb(control: Control) -> float:
    """How far the queue swings in the second half, kB."""
    seen = long_flows(control, ms=6)
    return float(seen.queue[len(seen.queue) // 2 :, 0].std()) / 1e3


def load(control: Control) -> float:
    """The share of the link that is used in the second half."""
    seen = long_flows(control)
    return float(seen.rate[len(seen.rate) // 2 :].sum(axis=1).mean()) / 100e9


def incast_gbps(control: Control) -> float:
    """8 messages of 4 MB to one host, until the last is there."""
    seen = watch(star(8, 100e9, US), control, [(k, 8, 4_000_000) for k in range(8)])
    return 8 * 32e6 / (max(seen.done_ps.values()) / 1e12) / 1e9


def short_gbps(control: Control) -> float:
    """One message of 1 MB by itself, over a link with a bare round trip of 40 us."""
    seen = watch(star(1, 100e9, 10 * US), control, [(0, 1, 1_000_000)])
    return 8e6 / (seen.done_ps[0] / 1e12) / 1e9


FIXED_POINT = queue_kb(4, 40e9, 60, 1_000)
MOVES = (
    Move(Dctcp, "threshold", (200_000, 600_000), "queue, kB", queue_kb(), "SIGCOMM 2010: Q_max = K + N"),
    Move(
        Dctcp, "g", (0.01, 0.9), "swing of the queue, kB", swing_kb, "SIGCOMM 2010, eq. 15: g is to be small"
    ),
    Move(Dcqcn, "timer", ("300us", "55us"), "queue, kB", FIXED_POINT, "CoNEXT 2016, eq. 14: p* falls with T"),
    Move(Dcqcn, "p_max", (0.2, 0.01), "queue, kB", FIXED_POINT, "CoNEXT 2016: q* from RED at p*"),
    Move(Dcqcn, "r_ai", ("10Mbps", "160Mbps"), "queue, kB", FIXED_POINT, "CoNEXT 2016, eq. 14"),
    Move(
        Timely,
        "t_low",
        ("50us", "200us"),
        "queue, kB",
        queue_kb(ms=20),
        "SIGCOMM 2015: below t_low it only grows",
    ),
    Move(
        Timely,
        "patched patched_beta",
        (0.05, 0.008),
        "queue, kB",
        queue_kb(4, 10e9, 40),
        "CoNEXT 2016, eq. 31",
    ),
    Move(
        Timely,
        "patched delta",
        ("5Mbps", "20Mbps"),
        "queue, kB",
        queue_kb(4, 10e9, 40),
        "CoNEXT 2016, eq. 31",
    ),
    Move(Swift, "base_target", ("25us", "60us"), "queue, kB", queue_kb(), "SIGCOMM 2020: the delay aimed at"),
    Move(
        Swift,
        "fs_range",
        ("0us", "125us"),
        "queue, kB",
        queue_kb(16),
        "SIGCOMM 2020: small windows aim higher",
    ),
    Move(Hpcc, "eta", (0.7, 0.95), "share of the link", load, "SIGCOMM 2019: the utilisation aimed at"),
    Move(
        Hpcc,
        "w_ai",
        (80, 4_000),
        "queue, kB",
        queue_kb(16),
        "SIGCOMM 2019: N W_AI beyond 1 - eta of the product waits",
    ),
    Move(
        Cubic, "beta", (0.5, 0.9), "queue, kB", queue_kb(ms=20), "RFC 9438: what a loss leaves of the window"
    ),
    Move(Cubic, "initial_window", (2, 40), "1 MB alone, Gb/s", short_gbps, "RFC 6928"),
    Move(
        NewReno,
        "beta",
        (0.5, 0.9),
        "queue, kB",
        queue_kb(ms=20),
        "RFC 5681: what a loss leaves of the window",
    ),
    Move(NewReno, "initial_window", (2, 40), "1 MB alone, Gb/s", short_gbps, "RFC 6928"),
    Move(
        Dcqcn,
        "clamp_target",
        (True, False),
        "incast 8:1 of 4 MB, Gb/s",
        incast_gbps,
        "QCN: a burst is one event",
    ),
    Move(Fixed, "bdp", (0.5, 2.0), "queue, kB", queue_kb(), "windows beyond the product wait"),
    Move(Fixed, "bdp", (0.125, 0.25), "share of the link", load, "windows below it leave the link idle"),
)
