"""ASTRA-sim as a whole, on our export: what its binary says comes back as a run; what goes wrong is named."""

from __future__ import annotations

import re
import stat
from pathlib import Path

import numpy as np
import pytest

import cosim
from cosim.errors import CosimError, LaunchError, SimulationError
from cosim.experiment.scenario import Scenario
from cosim.experiment.translate import Translation, translate
from cosim.formats.astra_sim.run import FOLDER, STDERR, binary
from cosim.results.compare import compare
from cosim.results.stored_run import load_run

SCENARIOS = Path(__file__).parents[2] / "scenarios"

TRAINING = """
name: training
topology: {kind: astra_sim, topology: [Ring], npus_count: [4], bandwidth: [50.0], latency: [500.0]}
network: congestion_aware
collectives: {all_reduce: ring, sizing: floor, splits: 4, active_chunks: 2, endpoint_delay: 10ns}
jobs:
  - iterations: 2
    start: 3us
    workload:
      kind: operations
      world_size: 4
      programs:
        - operations:
            - {name: c, kind: compute, duration: 7us}
            - {name: g, kind: collective, collective: all_reduce, size: 64KiB, deps: [c]}
            - {name: d, kind: compute, duration: 5us, deps: [c]}
            - {name: h, kind: collective, collective: all_reduce, size: 16KiB, deps: [g, d]}
"""


def scenario() -> Scenario:
    return cosim.loads(TRAINING)


def exported(folder: Path, to: str | dict[str, str] = "astra-sim") -> Translation:
    return translate(scenario(), to, folder)


def quiet(text: str) -> None:
    del text


def test_operations_start_and_end_as_ours(tmp_path: Path) -> None:
    try:
        binary("aware")
    except LaunchError as error:
        pytest.skip(str(error).replace("\n  ", "; "))
    ours = cosim.run(scenario())
    theirs = exported(tmp_path / "export").run(quiet)
    for column in ("job", "iteration", "rank", "op", "start_ps", "end_ps"):
        rows = [
            np.lexsort((run.records.ops.op, run.records.ops.iteration, run.records.ops.rank))
            for run in (ours, theirs)
        ]
        mine, other = (
            getattr(run.records.ops, column)[r] for run, r in zip((ours, theirs), rows, strict=True)
        )
        assert mine.tolist() == other.tolist(), column
    np.testing.assert_array_equal(ours.records.iteration_end_ps[0], theirs.records.iteration_end_ps[0])
    found = []
    for name, run in (("ours", ours), ("theirs", theirs)):
        run.save(tmp_path / name)
        found.append(load_run(tmp_path / name))
    difference = compare(*found)
    assert not difference.different
    assert difference.same_digest is None
    absent = {(row.section, row.key) for row in difference.untold}
    assert {("run", "num_messages"), ("run", "traffic.total_bytes"), ("links", "used")} <= absent
    ranks = [row for row in difference.rows if row.section == "ranks"]
    assert [row.a for row in ranks] == ours.records.finish_ps[0].tolist()
    assert "ASTRA-sim congestion_aware" in str(difference)


def test_without_an_endpoint_delay_it_runs_and_ends_when_ours_does(tmp_path: Path) -> None:
    """Collectives that begin at 0 and send at once: ASTRA-sim aborts on an event at its time 0."""
    try:
        binary("unaware")
    except LaunchError as error:
        pytest.skip(str(error).replace("\n  ", "; "))
    two_dimensions = cosim.load(SCENARIOS / "hierarchical.yaml", {"network": "congestion_unaware"})
    done = translate(two_dimensions, "astra-sim", tmp_path)
    assert done.report.is_lossless
    theirs, ours = done.run(quiet).records, cosim.run(two_dimensions).records
    assert theirs.finish_ps[0].tolist() == ours.finish_ps[0].tolist()
    assert sorted(theirs.ops.start_ps.tolist()) == sorted(ours.ops.start_ps.tolist())


def test_a_fabric_that_becomes_one_switch_is_lost_and_its_run_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ASTRASIM_BINARY", stand_in(tmp_path / "bin", says(4)))
    fabric = scenario().with_settings(
        {"topology": {"kind": "leaf_spine", "leaves": 2, "spines": 1, "endpoints_per_leaf": 2,
                      "rate": "80Gbps", "latency": "1us"}}
    )  # fmt: skip
    done = translate(fabric, "astra-sim", tmp_path / "out")
    assert ("topology", 1) in [(entry.what, entry.count) for entry in done.report.entries("lost")]
    monkeypatch.setattr("cosim.formats.astra_sim.run._MOST_TRACED", 0)
    assert done.run(quiet).summary.topology.startswith("Switch(4) in place of leaf-spine")


def test_what_other_streams_do_is_measured_by_running_what_was_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Two collectives on streams of their own: ASTRA-sim has one for both."""
    monkeypatch.setenv("ASTRASIM_BINARY", stand_in(tmp_path / "bin", says(4)))
    monkeypatch.setattr("cosim.formats.astra_sim.run._MOST_TRACED", 0)
    apart = cosim.loads(
        TRAINING.replace("size: 16KiB,", "size: 16KiB, stream: other,").replace("[g, d]", "[c]")
    )
    done = translate(apart, "astra-sim", tmp_path / "out")
    said: list[str] = []
    done.run(said.append)
    (line,) = [line for line in said if "on other streams there" in line]
    change = float(re.search(r"takes ([+-][\d.]+) %", line)[1])  # type: ignore[index]
    back = apart.with_settings({"jobs": [{"workload": {"kind": "chakra", "path": str(tmp_path / "out")}}]})
    ends = [cosim.run(one).records.end_ps for one in (apart, back)]
    assert change == pytest.approx(100 * (ends[1] / ends[0] - 1), abs=0.01)
    assert change > 0


def stand_in(folder: Path, script: str) -> str:
    """A program that says what ASTRA-sim might; ``$LOG`` is its log."""
    folder.mkdir(exist_ok=True)
    path = folder / "AstraSim_Analytical_Congestion_Aware"
    find_log = 'for a in "$@"; do case $a in --logging-folder=*) LOG=${a#*=};; esac; done; mkdir -p "$LOG"\n'
    path.write_text(f"#!/bin/sh\n{find_log}{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


FINISH = "[workload] [info] sys[{0}] finished, {1} cycles, exposed communication {1} cycles."


def says(ranks: int, log: str = "") -> str:
    lines = "\n".join(FINISH.format(rank, 100 + rank) for rank in range(ranks))
    return f"cat <<E\n{lines}\nE\ncat > $LOG/log.log <<E\n{log}\nE"


NODE = "[workload] [debug] {},sys->id={}, tick={}, node->id={}, node->name=x, node->type=4"
WHOLE_LOG = "\n".join(
    NODE.format(what, rank, 3000 + 10 * node + late, node)
    for rank in range(4)
    for node in range(9)
    for what, late in (("issue", rank), ("callback", 9))
)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("echo no such topology >&2; exit 3", "status 3; it said\n  no such topology"),
        (f"{says(3)}\nkill -ABRT $$", "signal 6"),
        (says(3), r"1 of 4 NPUs did not finish \(3\)"),
        (says(4), "no start or no end of node 1 of NPU 0"),
        ("exec sleep 20", "did not end within 0.3 s"),
    ],
)
def test_what_goes_wrong_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str, expected: str
) -> None:
    monkeypatch.setenv("ASTRASIM_BINARY", stand_in(tmp_path / "bin", script))
    translation = exported(tmp_path / "out", {"kind": "astra-sim", "deadline": "300ms"})
    with pytest.raises(SimulationError, match=expected):
        translation.run(quiet)
    assert (tmp_path / "out" / FOLDER / STDERR).exists()


def test_a_crash_after_the_last_finish_is_said_and_its_times_are_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ASTRASIM_BINARY", stand_in(tmp_path / "bin", f"{says(4, WHOLE_LOG)}\nkill -ABRT $$"))
    said: list[str] = []
    run = exported(tmp_path / "out").run(said.append)
    assert run.records.finish_ps[0].tolist() == [100_000, 101_000, 102_000, 103_000]
    assert "signal 6 when it cleaned up" in said[-1]


def test_times_of_nodes_become_times_of_operations(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ASTRASIM_BINARY", stand_in(tmp_path / "bin", says(4, WHOLE_LOG)))
    records = exported(tmp_path / "out").run(quiet).records
    assert records.finish_ps[0].tolist() == [100_000, 101_000, 102_000, 103_000]
    assert len(records.ops) == 4 * 8  # node 0 is the job's start
    last = records.ops.end_ps == 3_089_000
    assert records.ops.start_ps[last].tolist() == [3_080_000, 3_081_000, 3_082_000, 3_083_000]
    assert records.iteration_end_ps[0].tolist() == [[3_049_000] * 4, [3_089_000] * 4]
    [first, *_] = records.collectives
    assert (first.start_ps, first.ready_ps, first.end_ps) == (3_020_000, 3_023_000, 3_029_000)


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({}, "ASTRASIM_ROOT is not set"),
        ({"ASTRASIM_ROOT": "."}, "no program AstraSim_Analytical_Congestion_Aware below it"),
        ({"ASTRASIM_BINARY": "./nothing"}, "not a program that can be run"),
        (
            {"ASTRASIM_BINARY": "./AstraSim_Analytical_Congestion_Unaware"},
            "has the congestion-unaware backend",
        ),
    ],
)
def test_a_binary_that_is_not_there_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variables: dict[str, str], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    other = Path("AstraSim_Analytical_Congestion_Unaware")
    other.touch()
    other.chmod(0o755)
    for name in ("ASTRASIM_ROOT", "ASTRASIM_BINARY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(CosimError, match=says):
        binary("aware")
