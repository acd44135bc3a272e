"""Sweeps: combinations, seeds, tables, files; jobs by themselves; who communicates when."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

import cosim
from cosim.cli import app
from cosim.errors import InputError, ScenarioError
from cosim.experiment.alone import alone, render_alone
from cosim.experiment.scenario import load, loads
from cosim.experiment.sweep import load_sweep
from cosim.experiment.trials import run_sweep, save_trials
from cosim.results.measures import jain
from cosim.results.sharing import sharing
from cosim.results.trials import cell_of

MS = 10**9
SCENARIO = """
topology:
  kind: graph
  endpoints: [a0, a1, b0, b1]
  switches: [left, right]
  links:
    - {from: a0, to: left, rate: 100Gbps, latency: 0ns}
    - {from: b0, to: left, rate: 100Gbps, latency: 0ns}
    - {from: left, to: right, rate: 100Gbps, latency: 0ns}
    - {from: right, to: a1, rate: 100Gbps, latency: 0ns}
    - {from: right, to: b1, rate: 100Gbps, latency: 0ns}
network: fair_share
jobs:
  - {name: one, workload: {kind: periodic, compute: 10ms, size: 125MB}, iterations: 4}
  - {name: two, workload: {kind: periodic, compute: 10ms, size: 125MB}, iterations: 4}
"""
AXES = """
axes:
  share:
    even: {}
    uneven: {"jobs[0].weight": 3}
  jitter: {"jobs[0].jitter": [0.0, 0.1]}
seeds: 3
measures: [iteration, slowest, slowdown, fairness]
"""


def write_sweep(folder: Path, axes: str = AXES) -> Path:
    indented = "\n".join(f"  {line}" for line in SCENARIO.splitlines())
    path = folder / "question.yaml"
    path.write_text(f"name: question\nscenario:\n{indented}\n{axes}")
    return path


def test_a_sweep_runs_every_combination_with_every_seed(tmp_path: Path) -> None:
    trials = run_sweep(load_sweep(write_sweep(tmp_path)))
    assert len(trials.trials) == 2 * 2 * 3
    assert [t.seed for t in trials.trials[:3]] == [0, 1, 2]
    # Two equal flows share the link: 20 ms each instead of 10, so 30 ms an iteration instead of 20.
    even = trials.cell(("even", "0.0"), "iteration")
    assert even.mean == 30 * MS
    assert even.half_width == 0
    assert trials.cell(("even", "0.0"), "slowdown").mean == pytest.approx(1.5)
    assert trials.cell(("even", "0.0"), "fairness").mean == 1
    noisy = trials.cell(("even", "0.1"), "iteration")
    assert noisy.half_width is not None
    assert noisy.half_width > 0


def test_one_command_gives_table_figure_and_csv(tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = CliRunner().invoke(app, ["run", str(write_sweep(tmp_path)), "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert "question: 12 runs, 3 seeds" in result.stdout
    assert sorted(p.name for p in out.iterdir()) == [
        "figure.csv", "figure.png", "figure.svg", "table.txt", "trials.csv",
    ]  # fmt: skip
    rows = list(csv.DictReader(io.StringIO((out / "figure.csv").read_text())))
    first = next(
        r for r in rows if r["share"] == "even" and r["jitter"] == "0.0" and r["measure"] == "iteration"
    )
    assert (first["mean"], first["unit"], first["runs"]) == ("30.0", "ms", "3")
    again = tmp_path / "again"
    save_trials(run_sweep(load_sweep(tmp_path / "question.yaml")), again)
    assert (again / "trials.csv").read_text() == (out / "trials.csv").read_text()
    assert (again / "figure.svg").read_bytes() == (out / "figure.svg").read_bytes()


def test_intervals_are_students() -> None:
    values = [3.0, 5.0, 4.0, 8.0]
    cell = cell_of(values)
    low, high = stats.t.interval(0.95, 3, loc=np.mean(values), scale=stats.sem(values))
    assert cell.half_width == pytest.approx((high - low) / 2, rel=1e-3)
    assert cell_of([2.0]).half_width is None


def test_jains_index() -> None:
    assert jain([1, 1, 1, 1]) == 1
    assert jain([1, 0, 0, 0]) == 0.25


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        (
            "axes: {a: {x: {jobs.0.iteration: 3}}}",
            r"x: .*unknown key 'iteration'.*did you mean 'iterations'",
        ),
        ("axes: {a: {x: 3}}", "the label 'x' needs settings"),
        ("axes: {a: {jobs.0.count: [1], jobs.1.count: [1]}}", "stands alone on its axis"),
        ("axes: {a: {x: {}}}\nseeds: 0", "0 seeds; at least 1"),
        ("axes: {a: {x: {}}}\nmeasures: [iterations]", "did you mean 'iteration'"),
        ("axes: {a: {x: {}}}\nmeasure: [iteration]", "unknown key 'measure'"),
    ],
)
def test_mistakes_in_a_sweep_are_told_before_anything_runs(tmp_path: Path, axes: str, message: str) -> None:
    with pytest.raises(ScenarioError, match=rf"question\.yaml[\s\S]*{message}"):
        load_sweep(write_sweep(tmp_path, axes))


def test_what_does_not_go_with_a_sweep_is_refused(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["run", str(write_sweep(tmp_path)), "--alone"])
    assert isinstance(result.exception, InputError)


def test_jobs_by_themselves() -> None:
    scenario = loads(SCENARIO)
    assert alone(scenario) == {"one": 20 * MS, "two": 20 * MS}
    text = render_alone(cosim.run(scenario).summary, alone(scenario))
    assert "1.500 x" in text
    assert "1.0000" in text


def test_sharing_tells_overlap_and_shares_of_the_link() -> None:
    scenario = loads(SCENARIO).with_settings({"record.messages": "npz"})
    shared = sharing(cosim.run(scenario).records, bins=120)
    assert shared.link_name == "left -> right"
    # 30 ms an iteration, the last 20 of it both communicate, each at half the rate: a bin is a millisecond.
    expected = np.tile(np.repeat([0.0, 1.0], [10, 20]), 4)
    assert shared.active == pytest.approx(np.stack([expected, expected]))
    assert shared.contended == pytest.approx(expected)
    assert shared.rate_bps == pytest.approx(np.stack([expected, expected]) * 50e9)
    assert shared.overlap(0, 1) == pytest.approx(1)
    with pytest.raises(InputError, match="record them"):
        sharing(cosim.run(loads(SCENARIO)).records)


def test_a_figure_is_drawn_on_request(tmp_path: Path) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text(SCENARIO)
    drawn = tmp_path / "sharing.svg"
    result = CliRunner().invoke(app, ["run", str(path), "-q", "--figure", str(drawn)])
    assert result.exit_code == 0, result.output
    assert "who communicates when" in drawn.read_text() or drawn.stat().st_size > 10_000
    assert load(path).record.messages is False
