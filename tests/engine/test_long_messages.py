"""Messages of any size are counted: 64 GiB, which a bound row's bits can't say, and far beyond."""

from __future__ import annotations

import pytest

import cosim

GIB = 1 << 30


@pytest.mark.parametrize("network", ["fair_share", "congestion_aware"])
@pytest.mark.parametrize("release", ["network", "engine"])
@pytest.mark.parametrize("size", [32 * GIB - 1, 32 * GIB, 64 * GIB, 5000 * GIB + 1])
def test_a_message_takes_its_bytes_over_the_rate_and_is_counted_whole(
    network: str, release: str, size: int
) -> None:
    run = cosim.run(
        "topology: {kind: switch, endpoints: 2, rate: 80Gbps, latency: 0ns}\n"
        f"network: {network}\nrelease: {release}\n"
        f"jobs: [{{workload: {{kind: collective, collective: all_to_all, ranks: 2, size: {2 * size}B}}}}]\n",
        messages=True,
        allow_large=True,
    )
    assert isinstance(run, cosim.Run)
    assert run.records.messages is not None
    assert run.records.messages.size_bytes.tolist() == [size, size]
    assert run.records.traffic.size_bytes.sum() == 2 * size
    hops = 2 if network == "congestion_aware" else 1  # whole messages are stored and forwarded
    # congestion_aware counts in whole nanoseconds, as ASTRA-sim does.
    assert abs(run.records.messages.end_ps - hops * size * 100).max() <= 1000 * hops * (hops - 1)
