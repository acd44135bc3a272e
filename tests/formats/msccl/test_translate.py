"""``--to msccl``: the file is proved, and a scenario that reads it again takes the same time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import cosim
from cosim.errors import CosimError
from cosim.formats.msccl.prove import prove_program
from cosim.formats.msccl.read import read_program
from tests.formats.msccl.programs import FILES
from tests.inputs import needs

SCENARIO = """
topology: {kind: leaf_spine, leaves: 2, spines: 2, endpoints_per_leaf: 4, rate: 100Gbps, latency: 1us}
network: fair_share
jobs:
  - workload: {kind: collective, collective: COLLECTIVE, ranks: 8, size: 768KiB}
"""


def scenario(collective: str, algorithm: Any) -> Any:
    loaded = cosim.loads(SCENARIO.replace("COLLECTIVE", collective))
    return loaded.with_settings({f"collectives.{collective}": algorithm})


@pytest.mark.parametrize(
    ("collective", "algorithm"),
    [
        ("all_reduce", "ring"),
        ("all_reduce", {"algorithm": "ring", "channels": 2, "bidirectional": True}),
        ("all_reduce", "direct"),
        ("all_reduce", "halving_doubling"),
        ("all_reduce", "double_binary_tree"),
        ("all_gather", "ring"),
        ("reduce_scatter", "ring"),
        ("all_to_all", "direct"),
        ("all_to_all", "ring"),
    ],
)
def test_what_is_written_takes_the_same_time_when_it_is_read(
    tmp_path: Path, collective: str, algorithm: Any
) -> None:
    ours = scenario(collective, algorithm)
    done = cosim.translate(ours, "msccl", tmp_path / "out", strict=True)
    assert done.report.is_lossless
    file = tmp_path / "out" / "algorithm.xml"
    prove_program(read_program(file))
    again = ours.with_settings({f"collectives.{collective}": {"algorithm": "msccl", "path": str(file)}})
    one, two = cosim.run(ours), cosim.run(again)
    assert one.summary.jobs[0].iteration_mean_ps == two.summary.jobs[0].iteration_mean_ps
    assert one.records.num_messages == two.records.num_messages


@needs("msccl")
@pytest.mark.parametrize("path", [file for file in FILES if "ndv4" in file.stem], ids=lambda path: path.stem)
def test_production_files_come_out_as_they_went_in(tmp_path: Path, path: Path) -> None:
    program = read_program(path)
    assert program.collective is not None
    name = program.collective.value
    first = scenario(name, {"algorithm": "msccl", "path": str(path)})
    cosim.translate(first, "msccl", tmp_path / "out", strict=True)
    file = tmp_path / "out" / "algorithm.xml"
    assert read_program(file) == program
    second = scenario(name, {"algorithm": "msccl", "path": str(file)})
    assert cosim.run(first).digest == cosim.run(second).digest


def test_what_msccl_cannot_say_is_reported(tmp_path: Path) -> None:
    text = SCENARIO.replace("COLLECTIVE", "all_reduce").replace("ranks: 8", "repeat: 3, ranks: 8")
    loaded = cosim.loads(text).with_settings(
        {"collectives.splits": 4, "collectives.endpoint_delay": "1us", "jobs[0].iterations": 2}
    )
    report = cosim.translate(loaded, "msccl", tmp_path / "out").report
    said = {(entry.section, entry.what) for entry in report.entries("lost", "approximated")}
    assert ("approximated", "chunks that the operation is split into") in said
    assert ("lost", "other collectives of the programs") in said
    assert ("lost", "endpoint delay") in said
    assert ("lost", "iterations after the first") in said
    with pytest.raises(CosimError, match="can't say all of this scenario"):
        cosim.translate(loaded, "msccl", tmp_path / "strict", strict=True)


def test_halving_doubling_all_gather_says_that_messages_are_cut(tmp_path: Path) -> None:
    report = cosim.translate(scenario("all_gather", "halving_doubling"), "msccl", tmp_path / "out").report
    (entry,) = report.entries("approximated")
    assert "chunks don't lie side by side" in entry.what


def test_a_scenario_without_a_collective_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CosimError, match="carry isn't known"):
        cosim.translate(scenario("barrier", "dissemination"), "msccl", tmp_path / "out")
    loaded = scenario("all_reduce", "ring")
    with pytest.raises(CosimError, match="no collective is named 'all_gather'"):
        cosim.translate(loaded, {"kind": "msccl", "operation": "all_gather"}, tmp_path / "named")
