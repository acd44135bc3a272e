"""What measured jobs say of themselves: floors, slopes' errors and intervals, where the answer is known."""

import numpy as np
import pytest

from tests.lab.validation import intervals, training_floor, weak_scaling
from tests.lab.validation.fsdp_jobs import GPUS, Row


def job(gpu: str, gpus: int, seconds: float) -> Row:
    return Row({"model": "MPT-7b", "gpu": gpu, "gpus": str(gpus)}, seconds)


def test_equal_jobs_get_the_time_that_is_least_wrong_or_the_one_without_bias() -> None:
    seconds = np.array([1.0, 1.2, 3.0])
    tried = np.linspace(0.9, 3.1, 2201)
    errors = np.abs(tried[:, None] / seconds - 1).mean(axis=1)
    assert training_floor.least_wrong(seconds) == pytest.approx(tried[errors.argmin()])
    assert (training_floor.unbiased(seconds) / seconds - 1).sum() == pytest.approx(0)


def test_a_single_run_s_error_is_found_where_the_loss_is_proportional_and_runs_scatter() -> None:
    generator = np.random.default_rng(0)
    sizes = (8, 32, 64, 128)
    exact = {"job": [(gpus, 1 + gpus / 2000, 1.0) for gpus in sizes]}
    assert weak_scaling.run_error(exact) == pytest.approx(0, abs=1e-12)
    drawn = {
        str(number): [(gpus, seconds * (1 + 0.01 * generator.normal()), 1.0) for gpus, seconds, _ in jobs]
        for number in range(2000)
        for jobs in exact.values()
    }
    assert weak_scaling.run_error(drawn) == pytest.approx(0.01, rel=0.05)


def test_intervals_of_systems_that_are_alike_cover_what_they_say_and_of_an_odd_one_less() -> None:
    ratios = np.exp(0.05 * np.random.default_rng(0).normal(size=(3, 400)))
    ratios[2] **= 3
    found = [(job(gpu, 8, 1.0), float(ratio)) for gpu, row in zip(GPUS, ratios, strict=True) for ratio in row]
    lines = intervals.by_system(found)
    assert int(intervals.by_system(found[:800])[-1].split()[-1].rstrip("%")) == pytest.approx(80, abs=2)
    covered = {line.split()[0]: int(line.split()[5].rstrip("%")) for line in lines[1:-2]}
    assert covered["h100-sxm"] < 45


def test_ten_rows_are_covered_as_asked_if_eight_of_them_are() -> None:
    assert intervals.met_by_chance(10) == pytest.approx(45 * 0.8**8 * 0.2**2)
