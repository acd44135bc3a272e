"""Times beyond what picoseconds count to are refused, in every network and the engine."""

from __future__ import annotations

from typing import Any

import pytest

import cosim
from cosim.errors import NetworkError, SimulationError, TopologyError
from cosim.units import TOO_LATE

NETWORKS = [
    "congestion_aware",
    "congestion_unaware",
    "fair_share",
    {"model": "congestion", "control": "dctcp"},
]


def run(network: Any, rate: str, size: str, iterations: int = 1, latency: str = "0ns") -> int:
    ring = {"kind": "ring", "endpoints": 4, "rate": rate, "latency": latency}
    workload = {"kind": "collective", "collective": "all_reduce", "ranks": 4, "size": size}
    jobs = [{"workload": workload, "iterations": iterations}]
    return cosim.run({"topology": ring, "network": network, "jobs": jobs}).records.end_ps


@pytest.mark.parametrize("network", NETWORKS, ids=str)
@pytest.mark.parametrize(
    ("rate", "size", "iterations"), [("1kbps", "60GB", 1), ("1kbps", "1MB", 400), ("1bps", "64GB", 1)]
)
def test_what_would_take_longer_than_53_days_is_refused(
    network: Any, rate: str, size: str, iterations: int
) -> None:
    # A packet of 9,000 bytes takes 20 hours at 1 bit/s: packets that slow are not modelled at all.
    no_packets = rate == "1bps" and isinstance(network, dict)
    with pytest.raises(
        NetworkError if no_packets else SimulationError, match="are modelled" if no_packets else TOO_LATE
    ):
        run(network, rate, size, iterations)


@pytest.mark.parametrize("network", NETWORKS[:3], ids=str)
def test_what_takes_days_is_timed(network: Any) -> None:
    """Six steps of 250 kB at 1 kb/s, 300 times: 41.7 days."""
    assert run(network, "1kbps", "1MB", 300) == 300 * 6 * 250_000 * 8 * 10**9


def times_of(found: Any) -> dict[str, int]:
    """Every whole number of picoseconds in a summary, by its name; widths of bins are powers of two."""
    items = found.items() if isinstance(found, dict) else enumerate(found) if isinstance(found, tuple) else ()
    return {
        f"{key}.{name}" if name else str(key): value
        for key, one in items
        for name, value in (times_of(one) if isinstance(one, dict | tuple) else {"": one}).items()
        if isinstance(value, int) and "_ps" in f"{key}.{name}" and "bin_ps" not in f"{key}.{name}"
    }


def test_sums_of_days_are_what_they_are() -> None:
    """Each message takes 2000 s, all of them together two thirds of a year: a million times as long as at a
    rate a million times as high."""
    workload = {"kind": "collective", "collective": "all_reduce", "ranks": 4, "size": "1MB"}
    slow, fast = (
        times_of(
            cosim.run(
                {
                    "topology": {"kind": "ring", "endpoints": 4, "rate": rate, "latency": "0ns"},
                    "network": "congestion_aware",
                    "jobs": [{"workload": workload, "iterations": 300}],
                }
            ).summary.to_json()
        )
        for rate in ("1kbps", "1Gbps")
    )
    assert len(fast) > 40
    assert slow == {name: 10**6 * value for name, value in fast.items()}


@pytest.mark.parametrize("network", NETWORKS, ids=str)
def test_a_rate_that_is_next_to_nothing_is_refused(network: Any) -> None:
    with pytest.raises((SimulationError, NetworkError), match=f"{TOO_LATE}|are modelled"):
        run(network, "1e-30GB/s", "4MB")


@pytest.mark.parametrize("network", NETWORKS, ids=str)
def test_a_latency_of_days_is_refused(network: Any) -> None:
    with pytest.raises(TopologyError, match="latency of 1000000 s; a rate is above zero, a latency from 0"):
        run(network, "80Gbps", "4MB", latency="1e15ns")


def test_packets_that_take_less_than_the_clocks_tick_are_refused() -> None:
    for control in ("dctcp", "hpcc", "fixed", "timely", "dcqcn"):
        with pytest.raises(NetworkError, match=r"rates from .* are modelled"):
            run({"model": "congestion", "control": control}, "1e20bps", "4MB")
