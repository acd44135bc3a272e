"""A100s and H100s beside what MSCCL++ and NCCL took; all rows: ``python -m tests.lab.validation.device``."""

from __future__ import annotations

import numpy as np
import pytest

from tests.lab.validation.device import rows


def errors(table: str, sizes: range) -> list[float]:
    taken = {(row.size, row.measured_us): row for row in rows() if row.table == table and row.size in sizes}
    return [row.ours_us() / row.measured_us - 1 for row in taken.values()]


@pytest.mark.parametrize("gpu", ["a100", "h100"])
def test_packets_are_as_measured(gpu: str) -> None:
    found = errors(f"MSCCL++, 8 {gpu}", range(1 << 20))
    assert len(found) == 3
    assert np.abs(found).max() < 0.10


@pytest.mark.parametrize("gpu", ["a100", "h100"])
def test_small_all_reduces_of_nccl_are_as_measured(gpu: str) -> None:
    assert np.abs(errors(f"NCCL, 8 {gpu}", range(1 << 20))).mean() < 0.12


@pytest.mark.slow
def test_loads_of_many_mib_are_as_measured_though_nothing_was_fitted_to_them() -> None:
    found = errors("MSCCL++, 8 a100", range(1 << 20, 1 << 30))
    assert len(found) == 3
    assert np.abs(found).max() < 0.10
