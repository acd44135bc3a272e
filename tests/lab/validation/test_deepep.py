"""DeepEP's exchanges, beside what its own test prints."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.lab.validation.deepep import ROWS, simulated_gb_s


@pytest.mark.parametrize(("hosts", "nvlink", "nic"), [(2, 145.16, 44.37), (4, 60.35, 29.92)])
def test_bytes_of_both_links_are_those_that_deepep_counts(hosts: int, nvlink: float, nic: float) -> None:
    """deepseek-ai/DeepEP's issues 493 (8 x 2) and 82 (8 x 4), GB/s of one run over both."""
    row = next(one for one in ROWS if one.version == "V1" and one.hosts == hosts)
    to_hosts, to_ranks = row.reached
    assert to_ranks / to_hosts == pytest.approx(nvlink / nic, rel=0.005)


@pytest.mark.parametrize("row", ROWS[:4], ids=lambda row: f"{row.hosts}-{row.kernel}")
def test_published_kernels_are_within_fifteen_per_cent(row) -> None:  # type: ignore[no-untyped-def]
    """Times of the second version on two and four hosts."""
    assert row.gb_s / simulated_gb_s(row) == pytest.approx(1, abs=0.15)


def test_an_h800s_nvlinks_are_the_limit_of_two_hosts() -> None:
    """They carry 3.3 times what the NICs do."""
    assert simulated_gb_s(replace(ROWS[0], gpu="h800")) < 0.65 * simulated_gb_s(ROWS[0])
