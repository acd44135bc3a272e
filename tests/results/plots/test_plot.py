"""Figures: their data are the run's, files stand alone, and what can't be drawn says what to do."""

from __future__ import annotations

import csv
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import cosim
from cosim.cli import app
from cosim.errors import InputError
from cosim.results.plots.chart import Axis, Line, LineChart
from cosim.results.plots.plot import WHAT, save_plots

matplotlib = pytest.importorskip("matplotlib")

TEXT = """
name: "two, jobs"
topology: {kind: leaf_spine, leaves: 2, spines: 1, endpoints_per_leaf: 4, rate: 100Gbps, latency: 500ns}
network: {model: congestion, control: dctcp}
record: {messages: true, queues: "* -> *", rates: [one, two], every: 50us}
jobs:
  - {name: one, workload: {kind: periodic, compute: 200us, size: 5MB, communication: incast, ranks: 3},
     iterations: 3, jitter: 0.3}
  - {name: two, workload: {kind: periodic, compute: 100us, size: 1MB, ranks: 4}, iterations: 3}
"""
TRAINING = """
topology: {kind: switch, endpoints: 2, rate: 100Gbps, latency: 1us}
network: fair_share
events: [{rank: 0, fails: true, at: 30h, every: 41h, cause: fan}]
jobs: [{workload: {kind: operations, world_size: 2, programs: [{operations:
  [{name: one, kind: compute, duration: 6s}]}]},
  training: {lasts: 10d, restart: 20min, checkpoint: {every: 1h, time: 30s}}}]
"""


@pytest.fixture(scope="module")
def run() -> cosim.Run:
    return cosim.run(TEXT)


@pytest.fixture(scope="module")
def other(run: cosim.Run) -> cosim.Run:
    return cosim.run(TEXT, {"seed": run.summary.seed + 1})


def line(axes: object, k: int = 0) -> tuple[np.ndarray, np.ndarray]:
    drawn = axes.get_lines()[k]  # type: ignore[attr-defined]
    return np.asarray(drawn.get_xdata()), np.asarray(drawn.get_ydata())


def test_a_distribution_is_that_of_the_messages(run: cosim.Run) -> None:
    axes = cosim.plot(run, "cdf")
    times, shares = line(axes)
    took = np.sort(run.messages.end_ps - run.messages.start_ps)
    per = {"us": 1e6, "ms": 1e9}[axes.get_xlabel().rpartition("(")[2][:2]]
    assert times[1:] * per == pytest.approx(took)
    assert shares[0] == 0
    assert shares[1:] == pytest.approx(100 * np.arange(1, len(took) + 1) / len(took))


def test_queues_and_rates_are_those_that_were_kept(run: cosim.Run) -> None:
    _, longest = line(cosim.plot(run, "queue"))
    assert longest.max() * {"kB": 1e3, "MB": 1e6}["MB" if longest.max() < 100 else "kB"] == pytest.approx(
        run.queues.queue_bytes.max()
    )
    axes = cosim.plot(run, "rate")
    assert [one.get_label() for one in axes.get_lines()] == ["two, jobs one", "two, jobs two"]
    assert axes.get_ylabel() == "rate (Gbps)"
    assert line(axes)[1].max() <= 300.001  # of three senders at 100 Gbps


def test_throughput_carries_every_byte(run: cosim.Run) -> None:
    axes = cosim.plot(run, "throughput")
    times, rates = line(axes)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("time (ms)", "throughput (Gbps)")
    ends = np.append(times[1:] * 1e9, run.summary.end_ps)
    assert (rates * 1e9 / 8e12 * (ends - times * 1e9)).sum() == pytest.approx(run.messages.size_bytes.sum())
    assert rates.max() <= 100 * 8.001  # eight GPUs; bytes are whole


def test_seeds_are_a_band_and_choices_are_lines(run: cosim.Run, other: cosim.Run, tmp_path: Path) -> None:
    axes = cosim.plot([run, other], "cdf")
    assert len(axes.get_lines()) == len(axes.collections) == 1
    changed = cosim.run(TEXT, {"network.control": "swift"})
    axes = cosim.plot([run, other, changed], "cdf")
    assert [one.get_label() for one in axes.get_lines()] == ["two, jobs", "two, jobs (2)"]
    assert len(axes.collections) == 1


def test_sizes_have_a_median_and_a_99th_percentile(run: cosim.Run) -> None:
    for what in ("fct-by-size", "slowdown"):
        axes = cosim.plot(run, what)
        assert [str(one.get_label()).split()[-1] for one in axes.get_lines()] == ["p50", "p99"]
        assert (line(axes, 0)[1] <= line(axes, 1)[1]).all()
    assert (line(axes)[1] >= 1).all()  # nothing is faster than alone


def test_goodput_of_days_adds_up_to_that_of_the_training() -> None:
    trained = cosim.run(TRAINING)
    life = trained.summary.jobs[0].training
    assert life is not None
    days, shares = line(cosim.plot(trained, "goodput"))
    assert days.tolist() == [*range(10)]
    assert shares.mean() / 100 == pytest.approx(life.goodput)


def test_a_timeline_is_the_last_iteration_from_its_start(run: cosim.Run) -> None:
    axes = cosim.plot(run, "timeline")
    assert [one.get_text() for one in axes.get_yticklabels()][:1] == ["rank 0"]
    assert axes.get_xlim()[0] == 0
    with pytest.raises(InputError, match="of one run"):
        cosim.plot([run, run], "timeline")


def test_logarithmic_axes_have_marks_between_powers_of_ten() -> None:
    times, shares = np.array([2e9, 9e9, 60e9]), np.array([0.1, 0.5, 1.0])
    axes = (Axis("flow completion time", "ps", log=True), Axis("share of messages", "share"))
    assert LineChart(*axes, [Line("one", times, shares)]).in_units().scales == {
        "xscale": "log",
        "xticks": [2.0, 5.0, 10.0, 20.0, 50.0],
        "xticklabels": ["2", "5", "10", "20", "50"],
    }
    wide = LineChart(*axes, [Line("one", np.array([1e3, 1e12]), shares[:2])]).in_units()
    assert [round(np.log10(mark)) for mark in wide.scales["xticks"]] == [*range(-9, 1)]


def test_files_stand_alone_and_a_script_draws_the_same(
    run: cosim.Run, other: cosim.Run, tmp_path: Path
) -> None:
    save_plots([run], ["timeline"], tmp_path / "time", columns=2)
    written = save_plots([run, other], ["cdf", "queue"], tmp_path / "figure", columns=2)
    assert sorted(path.name for path in written) == [
        "figure-cdf.csv", "figure-cdf.py", "figure-queue.csv", "figure-queue.py", "figure.pdf", "figure.svg",
    ]  # fmt: skip
    pdf = (tmp_path / "figure.pdf").read_bytes()
    assert b"/FontFile2" in pdf  # embedded, as TrueType
    assert b"/Type3" not in pdf
    width = float(re.findall(rb"/MediaBox \[ ?0 0 ([\d.]+)", pdf)[0])
    assert width == pytest.approx(174 / 25.4 * 72, abs=1)
    assert "<text" not in (tmp_path / "figure.svg").read_text("utf-8")  # letters are outlines
    rows = list(csv.DictReader((tmp_path / "figure-cdf.csv").read_text("utf-8").splitlines()))
    x, y = list(rows[0])[1:3]
    assert re.fullmatch(r"flow_completion_time_(us|ms)", x)
    assert y == "share_of_messages_percent"
    place = {"MPLBACKEND": "agg", "MPLCONFIGDIR": matplotlib.get_cachedir()}  # its list of fonts is there
    for name in ("figure-cdf", "time"):
        command = [sys.executable, "-W", "error", f"{name}.py"]
        (tmp_path / f"{name}.pdf").unlink(missing_ok=True)
        done = subprocess.run(command, cwd=tmp_path, env=place, capture_output=True, text=True, check=False)
        assert done.stderr == ""
        assert b"/FontFile2" in (tmp_path / f"{name}.pdf").read_bytes()


def test_a_figure_replaces_only_what_cosim_wrote(run: cosim.Run, tmp_path: Path) -> None:
    mine = tmp_path / "figure.py"
    mine.write_text("mine")
    with pytest.raises(InputError, match=r"holds figure\.py, which cosim did not write"):
        save_plots([run], ["cdf"], tmp_path / "figure")
    assert [path.name for path in tmp_path.glob("figure*")] == ["figure.py"]
    save_plots([run], ["cdf"], tmp_path / "figure", overwrite=True)
    before = mine.read_text()
    assert before != "mine"
    mine.write_text("")
    save_plots([run], ["cdf"], tmp_path / "figure")
    assert mine.read_text() == before


def test_what_cannot_be_drawn_says_what_to_record(tmp_path: Path) -> None:
    run = cosim.run(TEXT, {"record": {}})
    for what, said in {
        "fct-by-size": "record.messages=true",
        "slowdown": "record.messages=true",
        "queue": "record.queues",
        "rate": "record.rates",
        "goodput": "training.lasts",
    }.items():
        with pytest.raises(InputError) as raised:
            cosim.plot(run, what)
        assert said in str(raised.value)
    with pytest.raises(InputError, match=", ".join(WHAT)):
        cosim.plot(run, "speed")
    with pytest.raises(InputError, match="200 runs on one axis"):
        cosim.plot([_named(run, k) for k in range(200)])
    with pytest.raises(InputError, match="nothing to plot"):
        cosim.plot([])
    with pytest.raises(InputError, match="screen, paper"):
        cosim.plot(run, style="poster")  # type: ignore[arg-type]
    for out, said in ((tmp_path / "a.docx", ".pdf, .svg or .png"), (tmp_path / "no" / "\0", "")):
        with pytest.raises(InputError) as raised:
            save_plots([run], ["cdf"], out)
        assert said in str(raised.value)
    result = CliRunner().invoke(app, ["plot", str(tmp_path)])
    assert isinstance(result.exception, InputError)


def _named(run: cosim.Run, k: int) -> cosim.StoredRun:
    """A run with a setting of its own."""
    folder = Path("/nowhere")
    stored = cosim.StoredRun(folder, run.summary)
    stored.__dict__["settings"] = {"jobs": k}
    stored.__dict__["columns"] = {}
    stored.__dict__["message_records"] = None
    return stored
