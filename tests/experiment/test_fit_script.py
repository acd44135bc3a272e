"""``cosim fit``: a preset or a kernel that explains measured jobs goes before any number of the GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

import cosim
from cosim.experiment.fit_gpu import fit
from cosim.experiment.measured_jobs import MeasuredIteration, MeasuredJob
from cosim.units import PS_PER_S


def scenario(folder: Path, **given: Any) -> Path:
    """Four layers of Llama 3 8B on an H100, whose long sequences make attention half of it."""
    workload = {
        "kind": "model", "model": {"kind": "llama3-8b", "layers": 4, "vocabulary": 1024, "sequence": 32768},
        "gpu": "h100-sxm", "batch": 1, "memory": "ignore", **given,
    }  # fmt: skip
    path = folder / "job.yaml"
    topology = {"kind": "switch", "endpoints": 1, "rate": "1Gbps", "latency": "1us"}
    whole = {"topology": topology, "network": "fair_share", "jobs": [{"workload": workload}]}
    path.write_text(yaml.safe_dump(whole))
    return path


def measured(path: Path, times: float = 1.0, **settings: str) -> MeasuredJob:
    """What the job takes with other settings, so many times as long."""
    given = {f"jobs[0].workload.{name}": value for name, value in settings.items()}
    took = cosim.run(path, set=given).summary.jobs[0].iteration_mean_ps
    assert took is not None
    return MeasuredJob(path, {}, MeasuredIteration(took / PS_PER_S * times))


def test_attention_of_ampere_explains_a_job_better_than_a_slow_clock(tmp_path: Path) -> None:
    path = scenario(tmp_path, recompute="none")
    found = fit([measured(path, 1.01, attention="flash2")])
    assert "attention: flash2 (-1.0%) explains this better than sustained_clock 0." in found.script
    assert "explains this better" in str(found)
    assert found.gpu.efficiency.sustained_clock == pytest.approx(0.78, rel=0.02)
    assert abs(found.before.errors[0]) > 0.2
    assert abs(found.after.errors[0]) < 0.01


def test_one_job_that_cant_tell_names_both_and_fits_the_gpu(tmp_path: Path) -> None:
    path = scenario(tmp_path, framework="pytorch", attention="flash2")
    found = fit([measured(path, recompute="full")])
    assert "recompute: full (+0.0%)" in found.script
    slow = fit([measured(scenario(tmp_path, framework="pytorch", attention="flash", recompute="none"), 1.5)])
    assert slow.script == ""  # no script takes half as long again
    assert slow.gpu.efficiency.sustained_clock < 0.6


def test_within_the_gpus_own_error_nothing_is_asked(tmp_path: Path) -> None:
    assert fit([measured(scenario(tmp_path), 1.03)]).script == ""
