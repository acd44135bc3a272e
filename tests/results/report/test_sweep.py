"""A sweep's page has every cell; its folder read back says the same."""

from __future__ import annotations

from pathlib import Path

import pytest

import cosim
from cosim.errors import InputError
from cosim.results.report.sweep_data import load_sweep, sweep_data

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
