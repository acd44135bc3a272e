"""What a page does with runs that lack something, names that mean harm, and very many choices."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import cosim
from cosim.cli import app
from cosim.errors import InputError
from cosim.experiment.progress import RunProgress
from cosim.results.report.document import report
from cosim.results.report.sweep_data import load_sweep
from cosim.results.search import SearchRun, TriedPoint
from cosim.results.store import COLUMNS_FILE, SUMMARY_FILE
from cosim.results.sweep import SweepRun, Trial
from tests.results.report.browser import Opened, in_a_browser

TEXT = """
topology: {kind: leaf_spine, leaves: 2, spines: 2, endpoints_per_leaf: 2, rate: 100Gbps, latency: 500ns}
network: fair_share
jobs: [{workload: {kind: periodic, compute: 1ms, size: 25MB, ranks: 4}, iterations: 4}]
"""
NASTY = "<img src=x onerror=\"document.title='run'\"><script>document.title = 'run'</script>"


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kept") / "run"
    cosim.run(TEXT, out=folder)
    return folder


def with_columns(kept: Path, folder: Path, columns: dict[str, np.ndarray]) -> Path:
    """The same run with other columns."""
    shutil.copytree(kept, folder)
    np.savez_compressed(folder / COLUMNS_FILE, allow_pickle=False, **columns)
    return folder


@in_a_browser
def test_without_messages_the_page_says_what_to_record(kept: Path, opened: Opened, tmp_path: Path) -> None:
    page = opened.show(report([cosim.load_run(kept)]).html, tmp_path)
    assert "record.messages=true" in page.inner_text("#network")
    assert page.get_by_label("messages").count() == 0
    assert opened.wrong == []


def test_a_run_that_lacks_a_column_is_refused_in_a_line(kept: Path, tmp_path: Path) -> None:
    columns = {name: one for name, one in np.load(kept / COLUMNS_FILE).items() if name != "path_job"}
    with pytest.raises(InputError, match="columns are missing: path_job") as refused:
        cosim.load_run(with_columns(kept, tmp_path / "old", columns))
    assert "run the scenario again" in str(refused.value)


def test_a_run_of_another_version_is_refused_in_a_line(kept: Path, tmp_path: Path) -> None:
    columns = {**np.load(kept / COLUMNS_FILE), "format": np.int64(99)}
    other = with_columns(kept, tmp_path / "other", columns)
    for arguments in (
        ["report", str(other), "-o", str(tmp_path / "out.html")],
        ["plot", str(other), "--what", "cdf"],
    ):
        refused = CliRunner().invoke(app, arguments).exception
        assert isinstance(refused, InputError)
        assert "format 99" in refused.message
        assert COLUMNS_FILE in str(refused)
        assert "run the scenario again" in str(refused)
    assert not (tmp_path / "out.html").exists()


@pytest.mark.parametrize("value", ["1.2 ms", "1200us", "1,2"])
def test_a_value_with_a_unit_of_its_own_is_refused_with_its_line(tmp_path: Path, value: str) -> None:
    head = "rate,seed,iteration_ps,doubtful,digest,error\n"
    (tmp_path / "trials.csv").write_text(f'{head}1,0,1000000,,,\n2,0,"{value}",,,\n')
    with pytest.raises(InputError) as refused:
        load_sweep(tmp_path)
    assert "trials.csv:3" in str(refused.value)
    assert value in str(refused.value)


@in_a_browser
def test_two_hundred_choices_are_small_multiples_that_fit(opened: Opened, tmp_path: Path) -> None:
    runs = tuple(
        Trial((f"choice {k}", str(column)), seed, {"iteration": 1e9 * (1 + k) + seed}, "")
        for column in range(4)
        for k in range(50)
        for seed in range(3)
    )
    axes = (("one", tuple(f"choice {k}" for k in range(50))), ("two", tuple(map(str, range(4)))))
    page = opened.show(SweepRun("many", axes, ("iteration",), runs).report().html, tmp_path, wide=390)
    assert page.locator("#sweep .panels svg").count() == 4
    assert page.locator("#sweep tbody tr").count() == 200
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert opened.wrong == []


@in_a_browser
@pytest.mark.parametrize("kind", ["sweep", "search"])
def test_names_in_sweeps_and_searches_are_texts(kind: str, opened: Opened, tmp_path: Path) -> None:
    axes = ((NASTY, (NASTY, "b")),)
    if kind == "sweep":
        trials = tuple(
            Trial((label,), seed, {"iteration": 1e9 + seed}, "", doubtful=NASTY)
            for label in (NASTY, "b")
            for seed in range(3)
        )
        html = SweepRun(NASTY, axes, ("iteration",), trials, description=NASTY).report().html
    else:
        tried = tuple(
            TriedPoint((label,), {"iteration": value}, doubtful=NASTY, seeds={"iteration": (value,)})
            for label, value in ((NASTY, 1e9), ("b", 2e9))
        )
        refused = (((NASTY,), NASTY),)
        made = SearchRun(
            NASTY, axes, ("iteration",), tried, refused, 3, True, winner=NASTY, description=NASTY
        )
        html = made.report().html
    page = opened.show(html, tmp_path)
    assert page.inner_text("h1") == NASTY
    assert page.title() == NASTY
    assert page.locator("main img").count() == 0
    assert opened.wrong == []


@in_a_browser
def test_what_was_interrupted_says_so_first(kept: Path, opened: Opened, tmp_path: Path) -> None:
    folder = tmp_path / "cut"
    shutil.copytree(kept, folder)
    summary = json.loads((folder / SUMMARY_FILE).read_text())
    (folder / SUMMARY_FILE).write_text(json.dumps({**summary, "interrupted": "Ctrl-C"}))
    page = opened.show(report([cosim.load_run(folder)]).html, tmp_path)
    said = page.locator("#answer .changed").first
    assert said.inner_text().startswith("Interrupted (Ctrl-C)")
    assert said.bounding_box()["y"] < 500

    def stop(told: RunProgress) -> None:
        if told.done:
            raise KeyboardInterrupt

    axes = {"rate": {"topology.rate": ["100Gbps", "50Gbps", "25Gbps"]}}
    done = cosim.sweep(TEXT, axes, progress=stop)
    assert 0 < len(done.runs) < 3
    page = opened.show(done.report().html, tmp_path)
    assert "Interrupted (KeyboardInterrupt): of 3 runs, 1 runs" in page.inner_text("#sweep")
    assert opened.wrong == []
