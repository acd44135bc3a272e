"""The device network beside closed forms: lines, round trips, passes, and the message-size model."""

from __future__ import annotations

from typing import Any

import pytest

import cosim

US = 1_000_000
BARE = (
    "hop_latency: 0ns, memory_latency: 0ns, unit_rate: 1e9GiB/s, router_rate: 1e9GiB/s, "
    "memory_rate: 1e9GiB/s, port_rate: 1e9GiB/s"
)
"""Parts that take no time: what is left are links and lines in flight."""
PAIR = "{kind: ring, endpoints: 2, rate: 1024GiB/s, latency: 1us}"


def run(network: str, topology: str, ranks: int, size: str, what: str = "send_recv", by: str = "") -> Any:
    return cosim.run(
        f"""
topology: {topology}
network: {network}
collectives: {{{what}: {by or what}}}
jobs: [{{workload: {{kind: collective, collective: {what}, ranks: {ranks}, size: {size}}}}}]
"""
    )


def time_ps(*args: str | int) -> int:
    return int(run(*args).summary.jobs[0].iteration_mean_ps)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("outstanding", "gib_s"), [(16, 122.07), (32, 244.14), (64, 488.28), (128, 976.56), (256, 1024.0)]
)
def test_a_stream_of_puts_has_what_is_in_flight_each_round_trip(outstanding: int, gib_s: float) -> None:
    network = f"{{model: device, gpu: {{{BARE}, outstanding: {outstanding}, wavefronts: 256}}}}"
    took = time_ps(network, PAIR, 2, "64MiB") - time_ps(network, PAIR, 2, "32MiB")
    assert 32 / 1024 / (took * 1e-12) == pytest.approx(gib_s, rel=0.01)


@pytest.mark.parametrize("size", [1, 127, 128, 129, 1000, 65_536])
def test_a_message_is_its_bytes_in_whole_lines(size: int) -> None:
    found = run("{model: device, control: 0B}", PAIR, 2, f"{size}B")
    lines = -(-size // 128)
    assert found.records.links.busy_ps.sum() == pytest.approx(
        lines * 128 / (1024 * 2**30) * 1e12, abs=lines + 1
    )


def test_time_of_messages_is_told_apart_by_cause() -> None:
    # Two passes of 64 KiB: half of the time the second waits for the first; rates are endless, and no flags.
    gpu = f"{{{BARE}, outstanding: 128, wavefronts: 32}}"
    network = f"{{model: device, access: get, workgroups: 4, control: 0B, gpu: {gpu}}}"
    found = run(network, "{kind: ring, endpoints: 2, rate: 1e9GiB/s, latency: 1us}", 2, "128KiB")
    spent = found.summary.line_waits.spent_ps
    assert spent["flag"] == 0
    assert spent["way"] == 2 * US
    assert spent["room"] == pytest.approx(2 * US, abs=100)
    assert spent["rate"] < 100


@pytest.mark.parametrize("passes", [1, 2, 3, 7])
def test_loads_go_in_passes_of_what_threads_hold(passes: int) -> None:
    # One load of 16 bytes a thread, 4 blocks of 1,024 threads: 64 KiB are in flight.
    gpu = f"{{{BARE}, outstanding: 128, wavefronts: 32}}"
    network = f"{{model: device, access: get, workgroups: 4, control: 0B, gpu: {gpu}}}"
    link = "{kind: ring, endpoints: 2, rate: 1e9GiB/s, latency: 1us}"
    size = (passes - 1) * 65_536
    for rest in (128, 40_000, 65_536):
        assert time_ps(network, link, 2, f"{size + rest}B") == pytest.approx(passes * 2 * US, abs=passes)


ALL = "{kind: switch, endpoints: 4, rate: 900GB/s, latency: 500ns}"


def test_lines_matter_to_small_messages_only() -> None:
    def ratio(size: str) -> float:
        # Without bytes of requests, of which messages know nothing: 16 of 128 are an eighth of the links.
        ours = time_ps("{model: device, access: get, control: 0B}", ALL, 4, size, "all_gather", "direct")
        return ours / time_ps("fair_share", ALL, 4, size, "all_gather", "direct")

    assert ratio("16KiB") > 1.5
    assert ratio("64MiB") == pytest.approx(1, abs=0.02)


def test_gets_ask_before_data_comes_and_fair_shares_help_them() -> None:
    def took(access: str, arbitration: str, size: str) -> int:
        network = f"{{model: device, access: {access}, arbitration: {arbitration}, outstanding: 32}}"
        return time_ps(network, ALL, 4, size, "all_gather", "direct")

    small = [took("put", "fair", "16KiB"), took("get", "fair", "16KiB")]
    assert small[1] > small[0]
    assert took("get", "fair", "2MiB") <= took("get", "fcfs", "2MiB")


def test_unrolling_helps_large_messages_and_saturates() -> None:
    def took(unroll: int, size: str) -> int:
        gpu = "{outstanding: 256, wavefronts: 4}"
        network = f"{{model: device, unroll: {unroll}, gpu: {gpu}}}"
        return time_ps(network, ALL, 4, size, "reduce_scatter", "direct")

    one, four, eight, sixteen = (took(unroll, "32MiB") for unroll in (1, 4, 8, 16))
    assert one > 1.5 * four
    assert (eight - sixteen) < (one - four) / 4
    assert took(1, "4KiB") == pytest.approx(took(16, "4KiB"), rel=0.1)
