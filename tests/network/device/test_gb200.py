"""The GB200 beside NVIDIA's own figures of its kernels: what was fitted, and what was not."""

from __future__ import annotations

import csv

import numpy as np
import pytest

import cosim
from tests.inputs import COPIED

FOLDER = COPIED / "measured" / "device"
SIZES = ("16", "256", "8192", "65536", "131072", "524288", "1048576")
ALL_REDUCE = {
    "oneshot_mc_us": "{algorithm: oneshot_multicast, launch: 1.2us}",
    "twoshot_mc_us": "{algorithm: twoshot_multicast, launch: 1.2us}",
    "twoshot_mc_poison_us": "{algorithm: twoshot_multicast, poison: true, launch: 1.2us}",
}
ALL_TO_ALL = {
    "lsa_simple_us": "{algorithm: lsa_alltoall, launch: 1.2us}",
    "lsa_poison_us": "{algorithm: lsa_alltoall, poison: true, launch: 1.2us}",
}


def took_us(collective: str, ranks: int, size: int, algorithm: str) -> float:
    found = cosim.run(
        f"""
topology: {{kind: switch, endpoints: {ranks}, rate: 900GB/s, latency: 0ns}}
network: {{model: device, gpu: gb200}}
collectives: {{{collective}: {algorithm}}}
jobs: [{{workload: {{kind: collective, collective: {collective}, ranks: {ranks}, size: {size}B}}}}]
"""
    )
    return found.summary.jobs[0].iteration_mean_ps / 1e6


def errors(collective: str, by: dict[str, str], sizes: tuple[str, ...] | None = None) -> list[float]:
    name = collective.replace("_", "")
    rows = csv.DictReader((FOLDER / f"gb200_custom_{name}.csv").read_text().splitlines())
    found = []
    for row in rows:
        ranks, size = int(row["gpus"]), row.get("bytes") or str(int(row["bytes_per_pair"]) * int(row["gpus"]))
        if sizes is not None and size not in sizes:
            continue
        for column, algorithm in by.items():
            if row[column]:
                found.append(took_us(collective, ranks, int(size), algorithm) / float(row[column]) - 1)
    return found


def test_all_reduces_of_four_are_as_measured() -> None:
    found = np.abs(errors("all_reduce", ALL_REDUCE, SIZES))
    assert found.mean() < 0.06
    assert found.max() < 0.15


@pytest.mark.slow
def test_all_sizes_of_four_are_as_measured() -> None:
    found = np.abs(errors("all_reduce", ALL_REDUCE))
    assert len(found) == 47
    assert found.mean() < 0.06
    assert found.max() < 0.15


def test_all_to_alls_of_eight_are_as_measured_though_nothing_was_fitted_to_them() -> None:
    assert np.abs(errors("all_to_all", ALL_TO_ALL)).mean() < 0.10


def test_a_barrier_grows_with_what_it_waits_for() -> None:
    few, many = (took_us("all_to_all", ranks, 16 * ranks, ALL_TO_ALL["lsa_simple_us"]) for ranks in (8, 32))
    assert few < many
