"""What a scenario file says first is what it asks: on the report, unless it has a description of its own."""

from __future__ import annotations

from pathlib import Path

import cosim

TEXT = """# yaml-language-server: $schema=cosim.json
# How long does it take?
#   Two ranks.
#
# For the editors of this file.
topology: {kind: ring, endpoints: 2, rate: 80Gbps, latency: 0ns}
network: fair_share
jobs: [{workload: {kind: collective, collective: all_reduce, ranks: 2, size: 4MB}}]
"""


def test_the_first_comment_is_the_description_also_of_a_run_read_back(tmp_path: Path) -> None:
    scenario = cosim.loads(TEXT)
    assert scenario.description == "How long does it take? Two ranks."
    assert cosim.loads(f"description: Who knows?\n{TEXT}").description == "Who knows?"
    assert cosim.loads(f"---\n{TEXT}").description == ""
    cosim.run(scenario, out=tmp_path)
    assert cosim.load_run(tmp_path).settings["description"] == scenario.description


def test_it_is_no_setting_that_two_runs_differ_in() -> None:
    one, other = cosim.run(TEXT), cosim.run(TEXT.replace("How long", "How many seconds"))
    assert cosim.compare(one, other).settings == ()


def test_a_sweep_has_it_too(tmp_path: Path) -> None:
    (tmp_path / "sweep.yaml").write_text(
        "# Which rate?\n"
        "scenario:\n"
        + "".join(f"  {line}\n" for line in TEXT.splitlines())
        + "axes: {rate: {topology.rate: [80Gbps, 40Gbps]}}\n"
    )
    done = cosim.sweep(tmp_path / "sweep.yaml", workers=1)
    assert done.description == "Which rate?"
