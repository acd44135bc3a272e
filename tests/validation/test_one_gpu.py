"""Scripts profiled without a GPU beside the kernels and iterations that one H100 had (2026-11-28)."""

from __future__ import annotations

from pathlib import Path

import pytest

from cosim.gpu.catalogue import read
from tests.validation.one_gpu.jobs import HERE, KINDS, Job, jobs

pytest.importorskip("torch", reason="needs PyTorch: pip install 'cosim-net[profile]'")

EAGER = ("llama-8b-6", "llama-70b-2", "gpt2-124m")
COMPILED = ("llama-8b-6-compiled", "llama-1b-long")


def job(name: str, folder: Path) -> Job:
    return next(one for one in jobs(HERE / "h100", folder) if one.name == name)


@pytest.mark.parametrize("name", [*EAGER, *(pytest.param(each, marks=pytest.mark.slow) for each in COMPILED)])
def test_a_profile_has_the_products_that_an_h100_had_and_their_time(name: str, tmp_path: Path) -> None:
    one = job(name, tmp_path)
    measured, profiled = one.measured_kernels(), one.simulated_kernels(read("h100-sxm-pytorch"))
    assert profiled[KINDS[0]].count == measured[KINDS[0]].count
    assert profiled[KINDS[0]].seconds == pytest.approx(measured[KINDS[0]].seconds, rel=0.06)
    assert profiled[KINDS[1]].seconds == pytest.approx(measured[KINDS[1]].seconds, rel=0.15)
    assert profiled[KINDS[2]].seconds == pytest.approx(measured[KINDS[2]].seconds, rel=0.15)
    assert one.simulated_s("h100-sxm-pytorch") == pytest.approx(one.seconds, rel=0.07)


def test_a_job_that_waits_for_its_host_takes_what_the_host_takes(tmp_path: Path) -> None:
    one = job("gpt2-124m-by-tensor", tmp_path)  # not fitted to
    assert one.simulated_s("h100-sxm-pytorch") == pytest.approx(one.seconds, rel=0.03)
