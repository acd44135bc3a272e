"""``cosim.run`` and ``cosim.sweep``: whatever the command line does, a script does too."""

from __future__ import annotations

import logging
import math
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import cosim
from cosim.cli import app
from cosim.experiment.progress import RunProgress
from cosim.experiment.run import read_source

ROOT = Path(__file__).resolve().parents[2]
MS = 10**9
TEXT = """
topology: {kind: ring, endpoints: 4, rate: 80Gbps, latency: 0ns}
network: congestion_aware
jobs: [{workload: {kind: collective, collective: all_reduce, ranks: 4, size: 4MB}, iterations: 2}]
"""
STEPS_PS = 6 * MS // 10
"""Six steps of a quarter of 4 MB at 10 bytes a nanosecond."""
SWEEP = "scenario:\n" + "".join(f"  {line}\n" for line in TEXT.strip().splitlines())
SWEEP += "axes: {rate: {topology.rate: [80Gbps, 160Gbps]}}\n"
SHARED = """
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
  - {name: one, workload: {kind: periodic, compute: 10ms, size: 125MB}, iterations: 2}
  - {name: two, workload: {kind: periodic, compute: 10ms, size: 125MB}, iterations: 2}
"""


def networks(*given: Any) -> dict[str, Any]:
    return {"kind": "networks", "networks": given}


def test_a_scenario_is_a_file_text_values_or_an_object(tmp_path: Path) -> None:
    file = tmp_path / "ring.yaml"
    file.write_text(TEXT)
    values = {
        "topology": {"kind": "ring", "endpoints": 4, "rate": "80Gbps", "latency": "0ns"},
        "network": "congestion_aware",
        "jobs": [
            {
                "workload": {"kind": "collective", "collective": "all_reduce", "ranks": 4, "size": "4MB"},
                "iterations": 2,
            }
        ],
    }
    sources: list[Any] = [file, str(file), TEXT, values, cosim.loads(TEXT)]
    runs = [cosim.run(source) for source in sources]
    assert runs[0].summary.jobs[0].iteration_ps == (STEPS_PS, STEPS_PS)
    assert len({run.digest for run in runs}) == 1
    assert [run.scenario.name for run in runs] == ["ring", "ring", "scenario", "scenario", "scenario"]
    assert values["network"] == "congestion_aware"


def test_a_sweep_is_a_file_text_values_or_an_object(tmp_path: Path) -> None:
    """Before, a script was told that a sweep's key 'axes' is unknown."""
    file = tmp_path / "rates.yaml"
    file.write_text(SWEEP)
    made = cosim.Sweep(scenario=cosim.loads(TEXT), axes={"rate": {"topology.rate": ["80Gbps", "160Gbps"]}})
    sources: list[Any] = [file, SWEEP, cosim.Sweep.load(file), made]
    for source in sources:
        done = cosim.sweep(source)
        assert done.trials.iteration_ps.tolist() == [STEPS_PS, STEPS_PS / 2]


def test_a_sweep_is_no_scenario_and_says_so() -> None:
    with pytest.raises(cosim.InputError, match=r"is a sweep, not a scenario\s+.*cosim\.sweep"):
        cosim.run(SWEEP)
    with pytest.raises(cosim.ScenarioError, match="this is a sweep, not a scenario") as caught:
        cosim.load(ROOT / "scenarios" / "cc-shootout.yaml")
    assert caught.value.location is not None
    assert caught.value.location.line is not None


def test_results_have_a_short_representation(tmp_path: Path) -> None:
    run = cosim.run(TEXT, out=tmp_path)
    assert repr(run) == "<Run scenario on Ring(4), network congestion_aware: 1.2 ms simulated>"
    assert repr(run.summary) == "<Summary of scenario on Ring(4), network congestion_aware: 1.2 ms simulated>"
    assert repr(run.records) == "<Records on Ring(4), network congestion_aware: 1.2 ms simulated>"
    assert repr(cosim.load_run(tmp_path)) == f"<StoredRun scenario in {tmp_path}>"
    beside = f"{tmp_path}: scenario on Ring(4), network congestion_aware"
    assert repr(cosim.compare(tmp_path, tmp_path)) == f"<Comparison of {beside} with {beside}: 0 rows differ>"
    written = cosim.translate(cosim.loads(TEXT), "flow-list", tmp_path / "flows")
    assert repr(written) == f"<Translation of scenario as flow-list in {tmp_path / 'flows'}>"
    both = cosim.study(networks("congestion_aware", "congestion_unaware"), TEXT)
    assert repr(both) == "<NetworkComparison of congestion_aware, congestion_unaware: 1 design>"
    assert repr(cosim.sweep(SWEEP)) == "<SweepRun scenario over rate: 2 runs>"


def test_the_sweeps_of_scenarios_can_be_run_from_python() -> None:
    found = read_source(ROOT / "scenarios" / "cc-shootout.yaml", {"seeds": [3]})
    assert isinstance(found, cosim.Sweep)
    assert found.num_runs > 1


def test_axes_make_a_scenario_a_sweep(tmp_path: Path) -> None:
    axes: dict[str, Any] = {
        "rate": {"slow": {"topology.rate": "40Gbps"}, "fast": {"topology.rate": "80Gbps"}}
    }
    done = cosim.sweep(TEXT, axes, seeds=2, measures=["iteration", "makespan"], out=tmp_path / "out")
    assert done.trials.rate.tolist() == ["slow", "slow", "fast", "fast"]
    assert done.trials.seed.tolist() == [0, 1, 0, 1]
    assert done.trials.makespan_ps.tolist() == [4 * STEPS_PS, 4 * STEPS_PS, 2 * STEPS_PS, 2 * STEPS_PS]
    assert {file.name for file in (tmp_path / "out").iterdir()} - {".cosim-files.json"} == {
        "table.txt", "trials.csv", "figure.csv", "figure.png", "figure.svg",
    }  # fmt: skip
    with pytest.raises(cosim.InputError, match="axes don't go with a sweep, which has its own: rate"):
        cosim.sweep(SWEEP, axes)
    with pytest.raises(cosim.InputError, match="a scenario needs axes"):
        cosim.sweep(TEXT)
    with pytest.raises(cosim.ScenarioError, match="sweep: measures"):
        cosim.sweep(TEXT, axes, measures=["iterations"])


def test_a_sweep_made_in_python_takes_settings() -> None:
    made = cosim.Sweep(scenario=cosim.loads(TEXT), axes={"rate": {"topology.rate": ["80Gbps", "160Gbps"]}})
    assert made.with_settings({"only.rate": "160Gbps"}).num_runs == 1
    with pytest.raises(cosim.ScenarioError, match="there is no axis 'rat'; did you mean 'rate'"):
        made.with_settings({"only.rat": "160Gbps"})


def test_networks_side_by_side() -> None:
    asked = networks("congestion_unaware", {"model": "fair_share"})
    done = cosim.study(asked | {"vary": {"topology.rate": ["80Gbps", "160Gbps"]}}, TEXT)
    assert done.networks == ("congestion_unaware", "{model: fair_share}")
    assert done.times("congestion_unaware") == [STEPS_PS, STEPS_PS / 2]
    assert done.designs == ("topology.rate=80Gbps", "topology.rate=160Gbps")
    said = {"kind": "networks", "networks": "congestion_unaware,{model: fair_share}"}
    texts = cosim.study(said | {"vary": "topology.rate=80Gbps,160Gbps"}, TEXT)
    assert str(texts) == str(done)


def test_each_job_beside_its_time_alone() -> None:
    done = cosim.run(SHARED)
    assert done.alone is None
    done.study("alone")
    assert done.alone == {"one": 20 * MS, "two": 20 * MS}
    assert done.to_json()["alone_ps"] == done.alone
    assert "1.500 x" in str(done)
    assert str(cosim.study("alone", SHARED)) in str(done)


def test_the_open_loop_beside_the_closed() -> None:
    done = cosim.run(SHARED, messages=True)
    study = {"kind": "open_loop", "changes": {"topology.links[2].rate": "200Gbps"}}
    one = done.study(study).jobs[0]
    assert one.closed_ps == (30 * MS, 30 * MS)
    assert one.recorded_ps == (20 * MS, 20 * MS)
    assert "closed loop against open loop" in str(done)
    assert done.to_json()["open_loop"]["jobs"][0]["closed_ps"] == (30 * MS, 30 * MS)
    study["changes"] = ["topology.links[2].rate=200Gbps"]
    assert cosim.study(study, SHARED).to_json() == done.to_json()["open_loop"]


def test_progress_is_told_of_runs_sweeps_and_networks() -> None:
    told: list[RunProgress] = []
    cosim.sweep(SWEEP, progress=told.append)
    assert [(at.done, at.total) for at in told] == [(1, 2), (2, 2)]
    told.clear()
    cosim.study(networks("congestion_unaware", "congestion_aware"), TEXT, progress=told.append)
    assert [(at.done, at.total, at.text) for at in told] == [
        (0, 2, "scenario on congestion_unaware"),
        (1, 2, "scenario on congestion_aware"),
    ]


def test_a_setting_without_effect_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    run = cosim.run(TEXT, {"jobs[0].weight": 3})
    [record] = [one for one in caplog.records if one.name == "cosim"]
    assert record.levelno == logging.WARNING
    assert [record.getMessage()] == list(run.warnings)


def test_what_is_asked_beside_the_run_may_be_interrupted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from cosim.experiment.store import trials

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(trials, "run_job", interrupted)
    file = tmp_path / "it.yaml"
    file.write_text(SHARED)
    done = CliRunner().invoke(app, ["run", str(file), "--alone"])
    assert done.exit_code == 130
    assert "digest" in done.stdout
    assert "by itself" not in done.stdout


def test_networks_that_are_interrupted_keep_whole_designs(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(at: RunProgress) -> None:
        if at.done == 3:
            raise KeyboardInterrupt

    asked = networks("congestion_unaware", "congestion_aware") | {"vary": {"seed": [0, 1]}}
    done = cosim.study(asked, TEXT, progress=stop)
    assert (done.designs, done.interrupted) == (("seed=0",), "KeyboardInterrupt")


@pytest.mark.parametrize(
    ("source", "options", "says"),
    [
        (SWEEP, "--alone", "--alone doesn't go with a sweep: that takes SCENARIO, --set, --out, --figure"),
        (SWEEP, "--network fair_share", "--network doesn't go with a sweep"),
        (SWEEP, "--open-loop seed=1", "--open-loop doesn't go with a sweep"),
        (TEXT, "--workers 2", "--workers doesn't go with a run on one network"),
        (TEXT, "--vary seed=1,2", "--vary doesn't go with a run on one network"),
        (TEXT, "--network fair_share --alone", "--alone doesn't go with --network"),
        (TEXT, "--network fair_share --what-matters", "--what-matters doesn't go with --network"),
        (TEXT, "--resume there", "SCENARIO doesn't go with --resume"),
        (None, "--resume there --out x", "--out doesn't go with --resume"),
        (None, "--resume there --set seed=1", "--set doesn't go with --resume"),
        (None, "", "give a scenario or a sweep, or --resume"),
    ],
)
def test_options_that_make_no_sense_together_are_named_as_they_were_typed(
    tmp_path: Path, source: str | None, options: str, says: str
) -> None:
    file = tmp_path / "it.yaml"
    file.write_text(source or "")
    done = CliRunner().invoke(app, ["run", *([str(file)] if source else []), *options.split()])
    assert isinstance(done.exception, cosim.InputError)
    assert says in str(done.exception)
    assert "\n" not in str(done.exception)


def test_resume_goes_on_as_the_run_began() -> None:
    with pytest.raises(cosim.InputError, match="out doesn't go with resume"):
        cosim.run(resume="there", out="x")
    with pytest.raises(cosim.InputError, match="give a scenario, or resume"):
        cosim.run()


def test_a_figure_that_cannot_be_written_is_said_before_the_run(tmp_path: Path) -> None:
    file = tmp_path / "it.yaml"
    file.write_text(SHARED)
    wrong = ["run", str(file), "--set", "jobs[0].iterations=1000000000", "--figure", "figure.xyz"]
    assert "it should end in" in str(CliRunner().invoke(app, wrong).exception)
    assert (
        CliRunner().invoke(app, ["run", str(file), "--figure", str(tmp_path / "figure.svg")]).exit_code == 0
    )
    assert (tmp_path / "figure.svg").stat().st_size > 10_000


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_a_figure_of_cosims_is_drawn_again_as_it_was(ending: str, tmp_path: Path) -> None:
    run, figure = cosim.run(SHARED, messages=True), tmp_path / f"figure.{ending}"
    drawn = run.draw(figure).read_bytes()
    assert run.draw(figure).read_bytes() == drawn
    figure.write_bytes(drawn.replace(b"cosim", b"other"))
    with pytest.raises(cosim.InputError, match="is no figure that cosim wrote"):
        run.draw(figure)


def test_all_messages_are_kept_on_request_and_nothing_is_folded() -> None:
    text = (
        TEXT.replace("endpoints: 4", "endpoints: 512")
        .replace("ranks: 4", "ranks: 512")
        .replace("iterations: 2", "iterations: 1")
    )
    folded = cosim.run(text)
    assert "folded" in folded.summary.jobs[0].folding[0]
    done = cosim.run(text, messages=True)
    assert done.messages.num_rows == done.records.num_messages == 512 * 2 * 511
    assert done.summary.jobs[0].iteration_ps == folded.summary.jobs[0].iteration_ps


def test_what_is_no_source_is_refused() -> None:
    wrong: Any = 5
    with pytest.raises(cosim.InputError, match="a int is no scenario"):
        cosim.run(wrong)


def test_runs_are_compared_as_they_are_and_as_they_were_stored(tmp_path: Path) -> None:
    one = cosim.run(TEXT, out=tmp_path / "one")
    two = cosim.run(TEXT, {"topology.rate": "160Gbps"}, out=tmp_path / "two")
    for a, b in ((one, two), (tmp_path / "one", cosim.load_run(tmp_path / "two"))):
        found = cosim.compare(a, b)
        assert not found.same_digest
        assert found.settings is not None
        assert [(s.key, s.a, s.b) for s in found.settings] == [("topology.rate", "80Gbps", "160Gbps")]
        ratios = {row.key: row.ratio for row in found.different if row.section == "jobs"}
        assert ratios["iteration_mean_ps"] == 0.5
    assert math.isclose(one.summary.links[0].utilisation, 1.0)
