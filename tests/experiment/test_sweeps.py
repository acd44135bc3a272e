"""Sweeps: combinations, seeds, tables, files; jobs by themselves; who communicates when."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

import cosim
from cosim.cli import app
from cosim.errors import InfeasibleError, InputError, ScenarioError
from cosim.experiment.alone import run_alone
from cosim.experiment.drawn import may_draw
from cosim.experiment.progress import RunProgress
from cosim.experiment.scenario import load, loads
from cosim.experiment.sweep import Sweep
from cosim.experiment.trials import run_sweep
from cosim.results.link_shares import link_shares
from cosim.results.measures import jain
from cosim.results.orders import Reversal, agreement, better, reversals, shown_order
from cosim.results.render.sharing_figure import draw_sharing
from cosim.results.sharing import sharing
from cosim.results.sweep import SweepRun, Trial, cell_of

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
    trials = run_sweep(Sweep.load(write_sweep(tmp_path)))
    assert len(trials.runs) == 2 * 2 * 3
    assert [t.seed for t in trials.runs[:3]] == [0, 1, 2]
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
    result = CliRunner().invoke(app, ["run", str(write_sweep(tmp_path)), "--out", str(out), "--workers", "2"])
    assert result.exit_code == 0, result.output
    assert "question: 12 runs, 3 seeds" in result.stdout
    assert sorted(p.name for p in out.iterdir()) == [
        ".cosim-files.json", "figure.csv", "figure.png", "figure.svg", "table.txt", "trials.csv",
    ]  # fmt: skip
    rows = list(csv.DictReader(io.StringIO((out / "figure.csv").read_text())))
    first = next(
        r for r in rows if r["share"] == "even" and r["jitter"] == "0.0" and r["measure"] == "iteration"
    )
    assert (first["mean"], first["unit"], first["runs"]) == ("30.0", "ms", "3")
    again = tmp_path / "again"
    run_sweep(Sweep.load(tmp_path / "question.yaml"), again)
    assert (again / "trials.csv").read_text() == (out / "trials.csv").read_text()
    assert (again / "figure.svg").read_bytes() == (out / "figure.svg").read_bytes()


def test_intervals_are_students() -> None:
    values = [3.0, 5.0, 4.0, 8.0]
    cell = cell_of(values)
    low, high = stats.t.interval(0.95, 3, loc=np.mean(values), scale=stats.sem(values))
    assert cell.half_width == pytest.approx((high - low) / 2, rel=1e-3)
    for count in (31, 32, 50, 400):
        many = cell_of([float(k % 7) for k in range(count)])
        error = stats.sem([float(k % 7) for k in range(count)])
        assert many.half_width == pytest.approx(stats.t.ppf(0.975, count - 1) * error, rel=3e-4)


def test_ratios_to_the_best_are_taken_seed_by_seed() -> None:
    """Seeds move both by far more than they differ: ratios have a narrow interval all the same."""
    trials = made({("a", "x"): [100.0, 200.0, 300.0], ("b", "x"): [111.0, 220.0, 330.0]})
    ratio = trials.of_best(("b", "x"), "iteration")
    assert ratio.mean == pytest.approx((1.11 + 1.10 + 1.10) / 3)
    assert ratio.half_width == pytest.approx(4.303 * stats.sem([1.11, 1.10, 1.10]), rel=1e-3)
    assert trials.of_best(("a", "x"), "iteration").mean == 1
    last = trials.figure_csv().splitlines()[-1].split(",")
    assert float(last[-3]) == pytest.approx(ratio.mean)
    assert made({("a", "x"): [0.0, 0.0]}).of_best(("a", "x"), "iteration").count == 0
    assert cell_of([2.0]).half_width is None


def test_a_baseline_is_what_others_are_held_against_in_each_column() -> None:
    trials = made(
        {
            ("a", "x"): [100.0, 200.0], ("a", "y"): [10.0, 10.0],
            ("b", "x"): [110.0, 240.0], ("b", "y"): [5.0, 6.0],
        }
    )  # fmt: skip
    told = str(replace(trials, baseline="a"))
    assert "over a, seed by seed" in told
    ratio = replace(trials, baseline="a").over_baseline(("b", "x"), "iteration")
    assert ratio.mean == pytest.approx(1.15)
    assert ratio.half_width == pytest.approx(12.706 * stats.sem([1.10, 1.20]), rel=1e-3)
    assert "1.150 ±0.635" in told
    assert "0.550 ±0.635" in told
    assert "seed by seed" not in str(trials)


def test_the_order_is_told_of_every_table_also_of_one_column() -> None:
    values = {("b", "x"): [2.0, 2.1], ("a", "x"): [1.0, 1.1]}
    assert "the order of control, best first; ~: seeds explain" in str(made(values))
    assert "    a < b" in str(made(values))
    alike = made(values | {("b", "y"): [4.0, 4.1], ("a", "y"): [3.0, 3.1]})
    assert "the order of control everywhere, best first" in str(alike)
    assert "the order of" not in str(made({("a", "x"): [1.0], ("a", "y"): [2.0]}))


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
        ("axes: {a: {x: {}, y: {}}}\nbaseline: z", "baseline: axis 'a' has no 'z'"),
    ],
)
def test_mistakes_in_a_sweep_are_told_before_anything_runs(tmp_path: Path, axes: str, message: str) -> None:
    with pytest.raises(ScenarioError, match=rf"question\.yaml[\s\S]*{message}"):
        Sweep.load(write_sweep(tmp_path, axes))


def test_what_does_not_go_with_a_sweep_is_refused(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["run", str(write_sweep(tmp_path)), "--alone"])
    assert isinstance(result.exception, InputError)


def test_jobs_by_themselves() -> None:
    scenario = loads(SCENARIO)
    assert run_alone(scenario) == {"one": 20 * MS, "two": 20 * MS}
    found = cosim.study("alone", scenario)
    assert found.times == run_alone(scenario)
    text = str(found)
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


def test_several_processes_give_the_same(tmp_path: Path) -> None:
    loaded = Sweep.load(write_sweep(tmp_path), ["seeds=2"])
    told: list[int] = []
    apart = run_sweep(loaded, workers=2, progress=lambda at: told.append(at.done))
    assert apart.trials_csv() == run_sweep(loaded).trials_csv()
    assert told == list(range(1, 7))  # without jitter nothing is drawn: one run for both seeds


def test_what_draws_nothing_runs_once_and_stands_in_the_table_for_every_seed(tmp_path: Path) -> None:
    loaded = Sweep.load(write_sweep(tmp_path))
    ran: list[RunProgress] = []
    whole = run_sweep(loaded, progress=ran.append)
    assert [one.total for one in ran] == [8] * 8  # of 12: two of four choices have no jitter
    rows = sorted(
        row
        for seed in range(3)
        for row in run_sweep(loaded.with_settings({"seeds": [seed]})).trials_csv().splitlines()[1:]
    )
    assert sorted(whole.trials_csv().splitlines()[1:]) == rows
    assert [one.seed for one in whole.runs] == [0, 1, 2] * 4


def test_a_plug_in_that_does_not_say_whether_it_draws_runs_for_every_seed(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from cosim.plugins import WorkloadSpec\n"
        "class Mine(WorkloadSpec):\n"
        "    def build(self, context): raise AssertionError\n"
    )
    text = SCENARIO.replace("{kind: periodic, compute: 10ms, size: 125MB}", "{plugin: mine.py:Mine}", 1)
    (tmp_path / "own.yaml").write_text(text)
    assert may_draw(load(tmp_path / "own.yaml"))
    assert not may_draw(loads(SCENARIO))
    assert may_draw(loads(SCENARIO, {"jobs.0.jitter": 0.1}))


def test_a_part_of_a_sweep_is_that_part_of_the_whole(tmp_path: Path) -> None:
    path = write_sweep(tmp_path)
    part = run_sweep(Sweep.load(path, ["only.share=uneven", "only.jitter=[0.1]"]))
    whole = run_sweep(Sweep.load(path))
    assert part.axes == (("share", ("uneven",)), ("jitter", ("0.1",)))
    assert part.runs == tuple(t for t in whole.runs if t.labels == ("uneven", "0.1"))
    for text, message in (
        ("only.shared=even", "no axis 'shared'; did you mean 'share'"),
        ("only.share=evn", "no 'evn'; did you mean 'even'"),
        ("only.share=[]", "nothing is left"),
    ):
        with pytest.raises(ScenarioError, match=message):
            Sweep.load(path, [text])


def test_what_axes_give_may_be_left_out_of_the_scenario(tmp_path: Path) -> None:
    path = tmp_path / "bare.yaml"
    path.write_text(
        "scenario: {topology: {kind: switch, endpoints: 2, rate: 80Gbps, latency: 0ns}}\n"
        "axes:\n"
        "  network: {network: [fair_share, congestion_unaware]}\n"
        "  traffic:\n"
        "    one: {jobs: [{workload: {kind: periodic, compute: 1ms, size: 10MB}}]}\n"
    )
    trials = run_sweep(Sweep.load(path))
    assert trials.cell(("fair_share", "one"), "iteration").mean == 2 * MS
    path.write_text(path.read_text().replace("10MB", "ten"))
    with pytest.raises(ScenarioError, match=r"bare\.yaml[\s\S]*fair_share / one[\s\S]*ten"):
        Sweep.load(path)


def test_an_interrupt_keeps_what_was_run(tmp_path: Path) -> None:
    loaded = Sweep.load(write_sweep(tmp_path))

    def stop(at: RunProgress) -> None:
        if at.done == 2:  # the first draws nothing: one run, three seeds
            raise KeyboardInterrupt

    trials = run_sweep(loaded, progress=stop)
    assert len(trials.runs) == 4
    assert "INTERRUPTED" in str(trials)
    assert trials.cell(("even", "0.0"), "iteration").count == 3
    assert trials.cell(("even", "0.1"), "iteration").count == 1
    assert "-" in str(trials)
    assert trials.save(tmp_path / "out")[0].exists()


def test_a_run_that_cannot_go_on_is_told_and_the_others_go_on(tmp_path: Path) -> None:
    path = tmp_path / "classes.yaml"
    path.write_text(
        "scenario:\n"
        "  topology: {kind: switch, endpoints: 2, rate: 80Gbps, latency: 0ns}\n"
        "  network: {model: congestion, control: dctcp}\n"
        "  jobs: [{workload: {kind: periodic, compute: 1ms, size: 10MB}}]\n"
        "axes: {class: {jobs.0.priority: [0, 9, 1]}}\n"
    )
    trials = run_sweep(Sweep.load(path))
    assert [t.error for t in trials.runs if not t.error] == ["", ""]
    assert [t.labels for t in trials.failed] == [("9",)]
    assert "1 run could not go on" in str(trials)
    assert "9, seed 0: NetworkError: congestion: priority 9" in str(trials)
    assert trials.order((), "iteration") == ("0", "1")
    result = CliRunner().invoke(app, ["run", str(path), "--workers", "1"])
    assert result.exit_code == 1
    assert "1 of 3 runs" in result.stderr


def test_a_choice_that_does_not_fit_is_an_answer_and_kept_as_one(tmp_path: Path) -> None:
    path = tmp_path / "cuts.yaml"
    path.write_text(
        "scenario:\n"
        "  topology: {kind: switch, endpoints: 16, rate: 400Gbps, latency: 1us}\n"
        "  network: fair_share\n"
        "  jobs:\n"
        "    - workload: {kind: model, model: llama3-70b, gpu: h100-sxm, batch: 16, sequence: 128}\n"
        "axes:\n"
        "  tp:\n"
        "    1: {'jobs.0.workload.parallel': {tp: 1, dp: 16}}\n"
        "    8: {'jobs.0.workload.parallel': {tp: 8, pp: 2}}\n"
        f"store: {tmp_path / 'store'}\n"
    )
    for again in (False, True):
        result = CliRunner().invoke(app, ["run", str(path)])
        assert result.exit_code == 0, result.output
        assert "1 choice can't be\n  1: Llama 3 70B does not fit on H100-SXM5: it has 76 GiB" in result.output
        assert ("2 of 2 runs are in the store" in result.stderr) is again
    trials = run_sweep(Sweep.load(path))
    assert [t.labels for t in trials.infeasible] == [("1",)]
    assert not trials.failed
    assert trials.order((), "iteration") == ("8",)
    with pytest.raises(InfeasibleError, match="no choice can be: Llama 3 70B does not fit"):
        cosim.sweep(path, set={"only.tp": [1]})


def made(values: dict[tuple[str, str], list[float]]) -> SweepRun:
    """SweepRun of controls (first axis) on patterns, a value for each seed."""
    controls, patterns = (tuple(dict.fromkeys(key[k] for key in values)) for k in (0, 1))
    return SweepRun(
        "made",
        (("control", controls), ("pattern", patterns)),
        ("iteration",),
        tuple(
            Trial(key, seed, {"iteration": value}, "")
            for key, found in values.items()
            for seed, value in enumerate(found)
        ),
    )


def test_an_order_is_told_from_noise_seed_by_seed() -> None:
    # Seeds move both alike, by far more than a is better: paired, the difference stands out all the same.
    trials = made(
        {
            ("a", "x"): [100.0, 200.0, 300.0], ("a", "y"): [9.0, 9.1, 9.2],
            ("b", "x"): [101.0, 201.1, 301.0], ("b", "y"): [5.0, 5.1, 5.2],
            ("c", "x"): [90.0, 215.0, 290.0], ("c", "y"): [6.0, 6.1, 6.2],
        }
    )  # fmt: skip
    assert better(trials, "a", "b", ("x",), "iteration") == 1
    assert better(trials, "b", "c", ("x",), "iteration") == 0
    assert shown_order(trials, ("x",), "iteration") == "c ~ a < b"
    assert shown_order(trials, ("y",), "iteration") == "b < c < a"
    assert reversals(trials, "iteration") == [Reversal("a", "b", (("x",),), (("y",),))]
    assert "a better than b: x; worse: y" in str(trials)


def test_agreement_is_kendalls_tau_b() -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        one, two = rng.integers(0, 4, 6), rng.integers(0, 4, 6)
        values = {
            (f"c{k}", name): [float(column[k])] for k in range(6) for name, column in (("x", one), ("y", two))
        }
        found = agreement(made(values), ("x",), ("y",), "iteration")
        expected = stats.kendalltau(one, two).statistic
        assert (found is None and np.isnan(expected)) or found == pytest.approx(expected)


def test_queues_marks_and_drops_are_measures(tmp_path: Path) -> None:
    path = tmp_path / "queues.yaml"
    path.write_text(
        "scenario:\n"
        "  topology: {kind: switch, endpoints: 9, rate: 10Gbps, latency: 1us}\n"
        "  network: {model: congestion, control: dctcp}\n"
        "  jobs: [{workload: {kind: periodic, compute: 0ps, size: 300kB, communication: incast, ranks: 9}}]\n"
        "axes: {network: {dctcp: {}, unaware: {network: congestion_unaware}}}\n"
        "only: {network: [dctcp]}\n"
        "measures: [queue_max, marks, drops, pauses, fct_p99]\n"
    )
    trials = run_sweep(Sweep.load(path))
    one = trials.runs[0].measures
    assert 0 < one["queue_max"] < 8 * 300_000
    assert 0 < one["marks"] < 8 * 300_000 / 1000
    assert one["drops"] == one["pauses"] == 0
    with pytest.raises(InputError, match="reports no queues"):
        run_sweep(Sweep.load(path, ["only.network=unaware"]))


def test_what_a_choice_sets_without_effect_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Of choices alone: what the scenario says may be for some of them."""
    path = tmp_path / "idle.yaml"
    path.write_text(
        "scenario:\n"
        "  topology: {kind: switch, endpoints: 2, rate: 10Gbps, latency: 1us}\n"
        "  network: {model: congestion, control: dctcp, ecn_max: 90kB}\n"
        "  jobs: [{workload: {kind: collective, collective: all_to_all, ranks: 2, size: 3kB}}]\n"
        "axes:\n"
        "  control: {network.control: [dctcp, swift]}\n"
        "  marks: {network.ecn_min: [10kB, 20kB]}\n"
        "seeds: 2\n"
    )
    run_sweep(Sweep.load(path))
    assert [line for line in caplog.messages if "no effect" in line] == [
        "swift / 10kB: network.ecn_min: has no effect: Swift does not look at marks (and with 1 more choices)"
    ]


def test_jobs_that_slide_apart_overlap_early_and_not_late() -> None:
    scenario = loads(SCENARIO).with_settings(
        {"jobs[0].weight": 3, "jobs[0].iterations": 16, "jobs[1].iterations": 16}
    )
    overlap = cosim.run(scenario).summary.overlap
    assert overlap is not None
    assert overlap.first_quarter > 0.2
    assert overlap.last_quarter < 0.01
    assert "first quarter" in str(cosim.run(scenario))


def test_a_long_run_is_drawn_as_its_beginning_and_its_end(tmp_path: Path) -> None:
    scenario = loads(SCENARIO).with_settings({"record.messages": "npz", "jobs[0].iterations": 40})
    records = cosim.run(scenario).records
    drawn = draw_sharing(records, "long", tmp_path / "long.svg")
    again = draw_sharing(records, "long", tmp_path / "again.svg")
    assert drawn.read_bytes() == again.read_bytes()
    part = sharing(records, since_ps=30 * MS, until_ps=60 * MS, bins=30)
    assert part.active == pytest.approx(np.tile(np.repeat([0.0, 1.0], [10, 20]), (2, 1)))


def test_shares_of_a_full_link_are_those_that_fill_it() -> None:
    """One has it for 4 ms by itself, then an eighth for 2 ms; the other seven, and all of it after."""
    edges = np.arange(0, 11) * MS
    start, end = np.array([0, 4], np.int64) * MS, np.array([6, 8], np.int64) * MS
    size = np.array([4 + 2 / 8, 2 * 7 / 8 + 2]) * 1_250_000  # 10 Gb/s
    who = np.arange(2)
    found = link_shares(start, end, size.astype(np.int64), who, 2, 10e9, edges) / 10e9
    assert found[0] == pytest.approx([1, 1, 1, 1, 1 / 8, 1 / 8, 0, 0, 0, 0], abs=0.01)
    assert found[1] == pytest.approx([0, 0, 0, 0, 7 / 8, 7 / 8, 1, 1, 0, 0], abs=0.01)
    # Of a link that was never full nothing is known but the mean.
    even = link_shares(start, end, size.astype(np.int64), who, 2, 40e9, edges)
    assert even[0][:6] == pytest.approx(np.full(6, 10e9 * 4.25 / 6))
