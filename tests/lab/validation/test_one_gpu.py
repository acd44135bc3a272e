"""Scripts profiled without a GPU beside the kernels and iterations that one H100 had (2026-11-28)."""

from __future__ import annotations

from pathlib import Path

import pytest

from cosim.gpu.catalogue import read
from cosim.models.catalogue.workload import ModelWorkload
from tests.lab.validation.one_gpu.fit import counted
from tests.lab.validation.one_gpu.jobs import HERE, KINDS, Job, jobs
from tests.profiler.profiled import needs_torch

pytestmark = needs_torch

WORKSPACE = 2 * 32 * 2**20
"""Bytes of cuBLAS's workspaces, 32 MiB for each of two threads, which the catalogue hasn't."""
MORE = ("llama-70b-2", "gpt2-124m", "llama-8b-6-compiled", "llama-1b-long")


def slow(name: str) -> object:
    """A job whose profile takes 5 CPU-seconds or more."""
    return pytest.param(name, marks=pytest.mark.slow)


@pytest.fixture(scope="module")
def profiles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Each script is profiled once."""
    return tmp_path_factory.mktemp("profiles")


def job(name: str, folder: Path, gpu: str = "h100") -> Job:
    return next(one for one in jobs(HERE / gpu, folder) if one.name == name)


@pytest.mark.parametrize("name", ["llama-8b-6", *map(slow, MORE)])
def test_a_profile_has_the_products_that_an_h100_had_and_their_time(name: str, profiles: Path) -> None:
    one = job(name, profiles)
    measured, profiled = one.measured_kernels(), one.simulated_kernels(read("h100-sxm-pytorch"))
    assert profiled[KINDS[0]].count == measured[KINDS[0]].count
    assert profiled[KINDS[0]].seconds == pytest.approx(measured[KINDS[0]].seconds, rel=0.06)
    assert profiled[KINDS[1]].seconds == pytest.approx(measured[KINDS[1]].seconds, rel=0.15)
    assert profiled[KINDS[2]].seconds == pytest.approx(measured[KINDS[2]].seconds, rel=0.15)
    assert one.simulated_s("h100-sxm-pytorch") == pytest.approx(one.seconds, rel=0.07)


@pytest.mark.slow
def test_a_job_that_waits_for_its_host_takes_what_the_host_takes(profiles: Path) -> None:
    one = job("gpt2-124m-by-tensor", profiles)  # not fitted to
    assert one.simulated_s("h100-sxm-pytorch") == pytest.approx(one.seconds, rel=0.03)


@pytest.mark.parametrize("name", ["llama-8b-6", slow("llama-70b-2")])
def test_kernels_that_go_through_elements_one_by_one_are_those_that_an_h100_had(
    name: str, profiles: Path
) -> None:
    took, profiled = counted(job(name, profiles))
    assert took == profiled > 40


def test_a_softmax_of_long_rows_reads_them_as_often_as_its_time_says(profiles: Path) -> None:
    one = job("llama-8b-6", profiles)
    for operator, kernel in (
        ("aten._log_softmax", "cunn_SoftMaxForward"),
        ("aten._log_softmax_backward_data", "cunn_SoftMaxBackward"),
    ):
        moved = sum(times * row[4] for row, times in one.profiled if row[0] == operator)
        seconds = sum(took for name, took in one.kernels if kernel in name)
        assert 0.8 < moved * 8 / seconds / read("h100-sxm").memory_rate < 1


@pytest.mark.parametrize("name", ["llama-8b-6", slow("llama-70b-2")])
def test_an_h200_is_foreseen_by_its_data_sheet_and_an_h100(name: str, profiles: Path) -> None:
    one = job(name, profiles, "h200")  # nothing was fitted to it
    assert one.simulated_s("h200-sxm-pytorch") == pytest.approx(one.seconds, rel=0.04)


@pytest.mark.parametrize("measured", ["h100", "h100-again", "h200"])
def test_the_catalogue_needs_the_memory_that_was_measured(measured: str) -> None:
    found = [one for one in jobs(HERE / measured, HERE) if one.catalogue is not None]
    for one in found:
        assert one.catalogue is not None
        given = {
            "gpu": "h100-sxm",
            "memory": "ignore",
            "batch": one.catalogue["micro_batch"],
            **one.catalogue,
        }
        needed = ModelWorkload.model_validate(given).memory_needed()
        # Queries, keys and values have an input cast for each, where the script's two products have two.
        assert needed + WORKSPACE == pytest.approx(one.memory_bytes, rel=0.022), one.name
        if "--compile" in one.arguments:
            assert needed + WORKSPACE == pytest.approx(one.memory_bytes, rel=0.001), one.name


@pytest.mark.parametrize(
    "name", [f"{each}-compiled" for each in ("gpt2-124m", "llama-1b", "llama-8b-6", "llama-3b-14")]
)
def test_compiled_blocks_under_autocast_take_the_measured_time(name: str, tmp_path: Path) -> None:
    one = job(name, tmp_path)
    assert one.by_catalogue("h100-sxm-pytorch")[0] == pytest.approx(one.seconds, rel=0.02)
