"""A sweep's page has every cell; its folder read back says the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import cosim
from cosim.errors import InputError
from cosim.results.orders import better, letters
from cosim.results.report.sweep_data import load_sweep, sweep_data
from cosim.results.sweep import SweepRun, Trial

TEXT = """
topology: {kind: ring, endpoints: 4, rate: 80Gbps, latency: 0ns}
network: fair_share
jobs: [{workload: {kind: collective, collective: all_reduce, ranks: 4, size: 4MB}}]
"""
AXES = {
    "rate": {"topology.rate": ["80Gbps", "160Gbps"]},
    "size": {"jobs[0].workload.size": ["4MB", "8MB"]},
}


def test_cells_have_means_in_the_figures_units_and_come_back_from_the_folder(tmp_path: Path) -> None:
    done = cosim.sweep(TEXT, AXES, seeds=2, measures=["iteration", "exposed"], out=tmp_path / "swept")
    data = sweep_data(done)
    means = {tuple(cell["labels"]): cell["means"] for cell in data["cells"]}
    assert means[("80Gbps", "8MB")] == [1.2, 1.0]  # milliseconds, share
    assert [cell["count"] for cell in data["cells"]] == [2] * 4
    back = sweep_data(load_sweep(tmp_path / "swept"))
    assert back["cells"] == data["cells"]
    assert back["axes"] == data["axes"]


@pytest.mark.parametrize(
    "text", ["", "a,b\n", "rate,seed,iteration,digest,error\nx,one,1,,\n", "rate,seed,nothing,digest,error\n"]
)
def test_another_file_is_refused_in_a_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "trials.csv").write_text(text)
    with pytest.raises(InputError) as caught:
        load_sweep(tmp_path)
    assert "\n" not in caught.value.message
    assert "trials.csv" in str(caught.value)


@pytest.mark.parametrize("seed", range(6))
def test_choices_share_a_letter_where_no_test_tells_them_apart(seed: int) -> None:
    drawn = np.random.default_rng(seed)
    labels = tuple("abcdefg")
    means = drawn.integers(1, 6, len(labels))
    runs = tuple(
        Trial((label,), k, {"iteration": float(mean + noise)}, "")
        for label, mean in zip(labels, means, strict=True)
        for k, noise in enumerate(drawn.normal(0, 0.6, 4))
    )
    done = SweepRun("letters", (("choice", labels),), ("iteration",), runs)
    found = letters(done, (), "iteration")
    for one in labels:
        for two in labels:
            apart = one != two and better(done, one, two, (), "iteration") != 0
            assert apart == (not {*found[one]} & {*found[two]})
    assert "a" in found[done.order((), "iteration")[0]]


def test_page_terminal_and_figure_have_the_same_letters() -> None:
    pytest.importorskip("matplotlib", reason="no matplotlib: pip install 'cosim-net[plot]'")
    from cosim.results.render.figure import new_figure
    from cosim.results.render.sweep_figure import draw_measure

    drawn = np.random.default_rng(3)
    labels = ("one", "two", "three", "four")
    runs = tuple(
        Trial((label,), k, {"iteration": 1e9 * (mean + noise)}, "")
        for label, mean in zip(labels, (4, 4.1, 6, 9), strict=True)
        for k, noise in enumerate(drawn.normal(0, 0.2, 4))
    )
    done = SweepRun("letters", (("choice", labels),), ("iteration",), runs)
    [page] = [one["of"] for one in sweep_data(done)["letters"]]
    assert len({*page.values()}) > 1
    told = [line.split() for line in str(done).splitlines() if " ms " in line]
    rows = {words[0]: words for words in told}
    for label in labels:  # a mean, its unit, an interval, letters, a star
        assert page[label] in rows[label][1:]
    _, [[panel]] = new_figure([3.0], 1, 6.0)
    draw_measure(panel, done, "iteration")
    assert [one.get_text() for one in panel.texts] == [page[label] for label in labels]


def test_of_one_seed_nothing_is_told_apart() -> None:
    runs = tuple(Trial((label,), 0, {"iteration": float(k)}, "") for k, label in enumerate("ab"))
    done = SweepRun("one", (("choice", ("a", "b")),), ("iteration",), runs)
    assert letters(done, (), "iteration") == {}
    assert [one["of"] for one in sweep_data(done)["letters"]] == [{}]
