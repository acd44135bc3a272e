"""A few measured runs through the full path; all of them: ``python -m tests.lab.validation.measured``."""

import numpy as np
import pytest

from cosim.gpu.catalogue import A100_80GB
from cosim.pattern.nccl import Nccl
from tests.lab.validation.measured import (
    DATA,
    FITTED,
    by_parallelism,
    predict,
    predict_nccl,
    read_nccl,
    read_rows,
)
from tests.lab.validation.surrogate import Surrogate


def test_at_most_fifteen_numbers_are_fitted() -> None:
    assert sum(map(len, FITTED.values())) + 1 <= 15


@pytest.mark.parametrize("gpus", [2, 4, 8])
def test_nccls_all_reduces_are_within_ten_percent(gpus: int) -> None:
    sizes, measured = read_nccl(DATA / f"nccl_allreduce_a100_gpus{gpus}.csv")
    few = slice(7, None, 73)
    error = np.abs(predict_nccl(gpus, sizes[few]) / measured[few] - 1)
    assert error.mean() < 0.10


def test_a_sample_of_single_host_rows_is_within_vtrains_error() -> None:
    rows = read_rows(DATA / "megatron_deepspeed_a100_single_node.csv")[::60]
    predicted = np.array([predict(row) for row in rows])
    error = np.abs(predicted / [row.measured_s for row in rows] - 1)
    assert error.mean() < 0.084
    assert "(1, 2)" in by_parallelism(rows, predicted)
    # The fit's stand-in is worked out by another hand: the replay has to agree with it.
    stand_in = Surrogate([row.job for row in rows]).predict(A100_80GB, Nccl())
    assert stand_in == pytest.approx(predicted, rel=0.01)


@pytest.mark.slow
def test_rows_of_many_hosts_fold_and_are_within_vtrains_error() -> None:
    # What isn't alike in each host can't be folded along them: that shows here and at no smaller size.
    rows = read_rows(DATA / "megatron_deepspeed_a100_multi_node.csv")[9::9]
    error = [predict(row) / row.measured_s - 1 for row in rows]
    assert np.abs(error).mean() < 0.1473
