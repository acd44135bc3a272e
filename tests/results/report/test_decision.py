"""The page of a search: its winner, how sure that is, why others lose, what could happen, how to run it."""

from __future__ import annotations

from math import erf, sqrt
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import cosim
from cosim.cli import app
from cosim.results.certainty import faster, interval_ps
from cosim.results.decision import chances, reasons
from cosim.results.report.decision_data import decision_data
from cosim.results.search import SearchRun, TriedPoint
from tests.results.report.browser import Opened, in_a_browser

SCENARIO = """
topology: {kind: leaf_spine, leaves: 2, spines: 2, endpoints_per_leaf: 4, rate: 100Gbps, latency: 500ns}
network: fair_share
jobs:
- workload:
    {kind: transformer, layers: 2, hidden: 1024, heads: 8, vocabulary: 1024, sequence: 512, micro_batch: 1,
     tensor_parallel: 4, data_parallel: 2, gpu: h100-sxm}
"""
DESIGN = """
# Which fabric?
scenario: base.yaml
axes:
  rate: {topology.rate: [100Gbps, 400Gbps]}
  up: {"1:1": {topology.oversubscription: 1}, "2:1": {topology.oversubscription: 2}}
objective: [iteration, price]
measures: [iteration, exposed]
optimizer: all
what_if:
  a spine fails: {events: [{node: spine1, down: true}]}
  a GPU is slow: {events: [{rank: 0, slow: 1.5}]}
  a GPU more: {topology.endpoints_per_leaf: 1}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("design")
    (made / "base.yaml").write_text(SCENARIO)
    (made / "design.yaml").write_text(DESIGN)
    return made


@pytest.fixture(scope="module")
def done(folder: Path) -> SearchRun:
    return cosim.search(folder / "design.yaml")


def point(label: str, value: float, **about: Any) -> TriedPoint:
    return TriedPoint((label,), {"iteration": value}, seeds={"iteration": (value,)}, **about)


@pytest.mark.parametrize("ratio", [1.0, 1.02, 1.1])
def test_of_two_the_probability_is_that_of_compare(ratio: float) -> None:
    error = (0.05, 0.03)
    one, two = chances(
        [point("a", 1e9, model_error=error), point("b", ratio * 1e9, model_error=error)], "iteration"
    )
    assert one.best == pytest.approx(faster(10**9, error, round(ratio * 1e9), error, alike=True), abs=0.01)
    assert one.best + two.best == pytest.approx(1)
    assert (one.low, one.high) == pytest.approx(interval_ps(10**9, error), rel=0.005)


def test_without_any_error_the_least_is_the_best_and_equals_share_it() -> None:
    assert [one.best for one in chances([point("a", 1.0), point("b", 2.0)], "iteration")] == [1, 0]
    assert [one.best for one in chances([point("a", 1.0), point("b", 1.0)], "iteration")] == [0.5, 0.5]


def test_seeds_are_drawn_alike_for_all() -> None:
    """What moves all points by the same says nothing; the spread of differences decides, as for a normal."""
    noise = (4.0, -4.0, 2.0, -2.0, 0.0)
    alike = [
        TriedPoint((name,), {"iteration": base}, seeds={"iteration": tuple(base + one for one in noise)})
        for name, base in (("a", 100.0), ("b", 101.0))
    ]
    assert chances(alike, "iteration")[0].best == 1
    apart = [
        alike[0],
        TriedPoint(("b",), {"iteration": 101.0}, seeds={"iteration": tuple(101 - one for one in noise)}),
    ]
    deviation = sqrt(sum((2 * one) ** 2 for one in noise) / 5 / 5)  # of the mean of five differences
    expected = 0.5 * (1 + erf(1 / deviation / sqrt(2)))
    assert chances(apart, "iteration")[0].best == pytest.approx(expected, abs=0.05)


def test_the_ranking_is_that_of_runs(done: SearchRun, folder: Path) -> None:
    data = decision_data(done)
    assert [tuple(one["labels"]) for one in data["ranked"]] == [one.labels for one in done.ranked]
    assert sum(one["best"] for one in data["ranked"]) == pytest.approx(1)
    for one in done.ranked:
        run = cosim.run(folder / "base.yaml", dict(one.changes))
        assert one.values["iteration"] == run.summary.jobs[0].iteration_mean_ps


def test_the_winners_scenario_can_be_run(done: SearchRun, tmp_path: Path) -> None:
    (tmp_path / "winner.yaml").write_text(decision_data(done)["winner"])
    assert done.best is not None
    found = cosim.run(tmp_path / "winner.yaml").summary.jobs[0].iteration_mean_ps
    assert found == done.best.values["iteration"]


def test_what_could_happen_is_run_on_the_first_three(done: SearchRun, folder: Path) -> None:
    assert len(done.what_ifs) == 9
    for one in done.what_ifs:
        (base,) = (able for able in done.able if able.labels == one.point.labels)
        if one.label == "a GPU more":
            assert "endpoints" in one.point.error
            continue
        event = {"node": "spine1", "down": True} if "spine" in one.label else {"rank": 0, "slow": 1.5}
        run = cosim.run(folder / "base.yaml", {**base.changes, "events": [event]})
        assert one.point.values["iteration"] == run.summary.jobs[0].iteration_mean_ps
        if "slow" in one.label:
            assert one.point.values["iteration"] > base.values["iteration"]


def test_every_loser_has_a_reason(done: SearchRun) -> None:
    why = reasons(done)
    assert {*why} == {one.labels for one in done.tried} - {done.ranked[0].labels}
    slow = next(one for one in done.ranked if one.labels[0] == "100Gbps")
    assert why[slow.labels].startswith("iteration ")
    assert "; but price " in why[slow.labels]
    limited = cosim.SearchRun(
        "x", (("a", ("b", "c")),), ("iteration",), (point("b", 1.0),), ((("c",), "too dear"),), 2, True
    )
    assert reasons(limited) == {("c",): "too dear"}


@in_a_browser
@pytest.mark.parametrize("wide", [1440, 390])
def test_the_page_begins_with_the_choice(done: SearchRun, opened: Opened, tmp_path: Path, wide: int) -> None:
    page = opened.show(done.report().html, tmp_path, wide=wide)
    said = page.locator("#answer .said")
    assert said.bounding_box()["y"] < 400
    assert said.inner_text().startswith(f"Choose {', '.join(done.ranked[0].labels)}. It is the best with")
    assert page.locator("h2").all_inner_texts() == ["Answer", "Ranking", "What if", "Run the winner"]
    assert page.locator("#ranking tbody tr").count() == 4
    with page.expect_download() as saved:
        page.locator("#run button").click()
    assert Path(saved.value.path()).read_text("utf-8") == done.winner
    assert "can't be" in page.inner_text("#what-if")
    assert page.evaluate("document.documentElement.scrollWidth") <= wide
    assert opened.wrong == []


@in_a_browser
def test_a_doubtful_winner_says_so_and_names_the_best_without_a_doubt(opened: Opened, tmp_path: Path) -> None:
    tried = (point("a", 1e9, doubtful="it is <b>old</b>"), point("b", 2e9))
    made = SearchRun("doubt", (("axis", ("a", "b")),), ("iteration",), tried, (), 2, True)
    page = opened.show(made.report().html, tmp_path)
    assert "Choose a, which is doubtful; the best without a doubt is b." in page.inner_text("#answer")
    assert page.locator("#answer .doubtful").inner_text().count("a, the winner: it is <b>old</b>") == 1
    assert "a ?" in page.inner_text("#ranking table")
    assert opened.wrong == []


@in_a_browser
def test_where_nothing_can_be_chosen_the_page_says_why(opened: Opened, tmp_path: Path) -> None:
    tried = (TriedPoint(("a",), {}, error="it needs more memory"),)
    made = SearchRun("none", (("axis", ("a", "b")),), ("iteration",), tried, ((("b",), "too dear"),), 2, True)
    page = opened.show(made.report().html, tmp_path)
    assert "No design that was run can be chosen." in page.inner_text("#answer")
    assert {"it needs more memory", "too dear"} <= {*page.locator("#answer td.long").all_inner_texts()}
    assert opened.wrong == []


def test_the_command_line_writes_the_page(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "decision.html"
    ran = CliRunner().invoke(
        app,
        [
            "search",
            str(folder / "design.yaml"),
            "--report",
            str(out),
            "--set",
            "what_if={}",
            "--set",
            "only.rate=[400Gbps]",
        ],
    )
    assert ran.exit_code == 0, ran.output
    assert f"written: {out}" in ran.output
    assert out.read_text("utf-8").startswith("<!doctype html>")


@pytest.mark.parametrize("change", ["what_if=[1]", "what_if.gone=3"])
def test_a_mistake_in_what_could_happen_is_told(folder: Path, change: str) -> None:
    with pytest.raises(cosim.InputError, match=r"what_if.* is not a mapping"):
        cosim.search(folder / "design.yaml", [change])


def test_what_no_scenario_has_is_told_beside_the_others(folder: Path) -> None:
    changes = ["what_if={x: {topology.nothing: 3}}", "only.rate=[400Gbps]", "only.up=['1:1']"]
    [one] = cosim.search(folder / "design.yaml", changes).what_ifs
    assert "nothing" in one.point.error
