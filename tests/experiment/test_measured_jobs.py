"""Measured jobs: a table is validated, and a GPU's numbers are set by one."""

from pathlib import Path

import numpy as np
import pytest
import yaml

from cosim.errors import InputError
from cosim.experiment.fit_gpu import fit, fitted_table
from cosim.experiment.measured_jobs import MeasuredIteration, MeasuredJob, read_jobs, validate
from cosim.gpu.calibrate import gpu_values, write_table
from cosim.gpu.kernels import KernelKind

JOB = """
topology: {kind: dgx-h100}
network: fair_share
jobs:
  - workload:
      kind: model
      model:
        {kind: transformer, layers: 2, hidden: 4096, heads: 32, ffn: 11008, vocabulary: 32000, sequence: 2048}
      gpu: {kind: custom, name: new, like: h100-sxm, peak_flops: {bf16: 1500.0e+12}, memory_rate: 6TB/s}
      parallel: {dp: 8}
      micro_batch: 2
"""


@pytest.fixture
def job(tmp_path: Path) -> Path:
    path = tmp_path / "job.yaml"
    path.write_text(JOB)
    return path


def test_one_measurement_sets_one_number_and_other_jobs_gain_from_it(job: Path, tmp_path: Path) -> None:
    known = MeasuredJob(job, {}, MeasuredIteration(1.0)).gpu()
    efficiency = known.efficiency.model_copy(update={"sustained_clock": 0.55, "memory_peak": 0.68})
    values = gpu_values(known.model_copy(update={"efficiency": efficiency}))
    true = {"jobs[0].workload.gpu": {"kind": "custom"} | {k: v for k, v in values.items() if v is not None}}
    others: list[dict[str, object]] = [{"jobs[0].workload.micro_batch": count} for count in (4, 8)]

    def measured(settings: dict[str, object]) -> MeasuredJob:
        seconds = MeasuredJob(job, settings, MeasuredIteration(1.0)).simulate({**true, **settings})
        return MeasuredJob(job, settings, MeasuredIteration(seconds))

    jobs = [measured(settings) for settings in others]
    before = np.abs(validate(jobs).errors).mean()
    found = fit([measured({})])
    assert found.fitted == ("sustained_clock",)
    assert np.abs(found.after.errors).max() < 1e-3
    write_table(tmp_path / "gpu.yaml", fitted_table(found))
    gpu = {"jobs[0].workload.gpu": {"kind": "table", "path": str(tmp_path / "gpu.yaml")}}
    after = [one.simulate(gpu) / one.seconds - 1 for one in jobs]
    assert np.abs(after).mean() < before / 2
    assert (
        "1 measured job"
        in yaml.safe_load((tmp_path / "gpu.yaml").read_text())["gpu"]["calibration"]["source"]
    )


def test_a_table_of_jobs_is_read_and_its_mistakes_are_named(job: Path, tmp_path: Path) -> None:
    table = tmp_path / "jobs.csv"
    table.write_text("scenario,measured,jobs[0].workload.micro_batch\njob.yaml,100ms,4\njob.yaml,1.5s,\n")
    first, second = read_jobs(table)
    assert (first.seconds, dict(first.settings)) == (0.1, {"jobs[0].workload.micro_batch": "4"})
    assert (second.seconds, dict(second.settings), second.scenario) == (1.5, {}, job)
    table.write_text("scenario,measured\njob.yaml,185.9501495361328ms\n")  # as a script prints it
    assert read_jobs(table)[0].seconds == pytest.approx(0.1859501495361328, rel=1e-15)
    asked: list[Path] = []

    def read_trace(path: Path) -> MeasuredIteration:
        asked.append(path)
        return MeasuredIteration(0.2, {KernelKind.MATMUL: 0.1})

    table.write_text("scenario,kineto,measured\njob.yaml,run/t.json,\njob.yaml,run/t.json,150ms\n")
    assert [one.seconds for one in read_jobs(table, read_trace)] == [0.2, 0.15]
    assert asked == [tmp_path / "run/t.json"] * 2
    for text, what in (
        ("scenario\njob.yaml\n", "columns"),
        ("scenario,measured\njob.yaml,soon\n", "is no time"),
        ("scenario,measured\njob.yaml,1e400s\n", "is no time"),
        ("scenario,measured\njob.yaml,-1s\n", "more than nothing"),
    ):
        table.write_text(text)
        with pytest.raises(InputError, match=what):
            read_jobs(table)
    with pytest.raises(InputError, match="no measured jobs"):
        fit([])


def test_a_traced_iteration_sets_what_its_kernels_tell_apart(job: Path, tmp_path: Path) -> None:
    job.write_text(JOB.replace("sequence: 2048", "sequence: 8192"))  # attention counts
    base = MeasuredJob(job, {}, MeasuredIteration(1.0, dict.fromkeys(KernelKind, 1.0)))
    known = base.gpu()
    true = {"sustained_clock": 0.6, "memory_training": 0.6, "attention_peak": 0.4}
    other = known.model_copy(update={"efficiency": known.efficiency.model_copy(update=true)})
    values = {"kind": "custom"} | {k: v for k, v in gpu_values(other).items() if v is not None}
    seconds = base.simulate({"jobs[0].workload.gpu": values})
    kernels = {kind: took for kind, took in base.kernels_on(other).items() if took}  # as a trace has them
    measured = MeasuredIteration(seconds, kernels)
    assert 0.5 * seconds < sum(measured.kernels.values()) < seconds  # the rest: gaps, and what is exposed
    found = fit([MeasuredJob(job, {}, measured)])
    assert {*true} <= {*found.fitted}
    assert [getattr(found.gpu.efficiency, name) for name in true] == pytest.approx([*true.values()], rel=0.01)
    assert [row.after for row in found.kernels] == pytest.approx([*measured.kernels.values()], rel=0.005)
    assert "matmul " in str(found)
    with pytest.raises(InputError, match="rank 8 was measured, but the job has 8 ranks"):
        fit([MeasuredJob(job, {}, MeasuredIteration(1.0, measured.kernels, (8,)))])


def test_a_job_that_waits_for_its_host_sets_the_hosts_number(job: Path, tmp_path: Path) -> None:
    text = JOB.replace("micro_batch: 2", "host: pytorch-2026").replace("hidden: 4096", "hidden: 256")
    job.write_text(text.replace("ffn: 11008", "ffn: 512").replace("sequence: 2048", "sequence: 64"))
    setting = {"jobs[0].workload.host": {"kind": "custom", "operator_time": "80us"}}
    seconds = MeasuredJob(job, setting, MeasuredIteration(1.0)).simulate()
    found = fit([MeasuredJob(job, {}, MeasuredIteration(seconds))])
    assert found.fitted == ("operator_time",)
    assert "tells apart: host.operator_time" in str(found)
    assert found.gpu.host.operator_time == pytest.approx(80e6, rel=2e-3)
    assert "operator_time" not in found.gpu.fitted
    assert found.gpu.host.fitted["operator_time"] == "1 measured job (cosim fit)"
    write_table(tmp_path / "gpu.yaml", fitted_table(found))
    named = {"jobs[0].workload.gpu": {"kind": "table", "path": str(tmp_path / "gpu.yaml")}}
    alone = MeasuredJob(job, {}, MeasuredIteration(1.0)).simulate({**named, "jobs[0].workload.host": None})
    assert alone == pytest.approx(seconds, rel=1e-3)
