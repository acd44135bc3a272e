"""Published jobs of hybrids beside simulated ones: ``python -m tests.lab.validation.training megatron``."""

import numpy as np

from tests.lab.validation import megatron_jobs
from tests.lab.validation.training import predicted_s


def test_nemotron_nanos_jobs_are_within_eight_percent_and_have_no_bias_with_nothing_fitted_to_them() -> None:
    rows = [row for row in megatron_jobs.rows() if row.model == "Nemotron_3_Nano"]
    alike = {row.gpu: row for row in rows}
    took = {gpu: predicted_s(row) for gpu, row in alike.items()}
    error = np.array([took[row.gpu] / row.seconds - 1 for row in rows])
    assert len(rows) == 13
    assert np.abs(error).mean() < 0.08
    assert abs(error.mean()) < 0.05


def test_all_but_two_published_jobs_can_be_stated() -> None:
    why = [row.why_not() for row in megatron_jobs.rows()]
    assert len(why) == 138
    assert sorted(text.split(":")[0] for text in why if text) == [
        "compressed sparse attention and hyper-connections",
        "low-rank adapters beside frozen weights",
    ]
