"""``cosim translate``: what is written where, what is said of losses, and how mistakes are met."""

from __future__ import annotations

import json
import random
import re
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pydantic import Field
from typer.testing import CliRunner

import cosim
from cosim.cli import app
from cosim.errors import CosimError, InputError
from cosim.experiment.translate import REPORT_FILE, find_format
from cosim.files.folder import MANIFEST
from cosim.formats.htsim.file import Matrix, read_matrix
from cosim.registry import GROUPS, find, names
from cosim.translation.contract import Format, Progress
from cosim.translation.loss_report import LossReport, TranslationError
from cosim.translation.says import Says, count
from cosim.translation.source import Source

SCENARIO = """
topology: {kind: ring, endpoints: 8, rate: 400Gbps, latency: 500ns}
network: fair_share
collectives: {endpoint_delay: 10ns, reduction_rate: 100GB/s}
jobs:
  - name: one
    workload:
      kind: operations
      mesh: {dp: 2, tp: 2}
      programs:
        - operations:
            - {name: work, kind: compute, duration: 1500ns, phase: forward}
            - {name: sum, kind: collective, collective: all_reduce, size: 64KiB, axes: [tp], deps: [work]}
            - {name: root, kind: collective, collective: broadcast, size: 1KiB, root: 2, stream: other}
    iterations: 3
    priority: 1
    placement: {kind: explicit, endpoints: [3, 2, 1, 0]}
  - name: two
    workload: {kind: periodic, compute: 1us, size: 1MiB, ranks: 2}
    start: 5us
    weight: 2
    placement: {kind: explicit, endpoints: [6, 7]}
"""


class Pairs(Format):
    """A line for each pair that talks; for this test"""

    says: ClassVar[frozenset[Says]] = frozenset({Says.MESSAGES, Says.NAMES})
    header: bool = Field(False, description="begin with a line of names")

    def write(self, source: Source, out: Path, report: LossReport, progress: Progress) -> None:
        assert source.jobs
        (out / "deep").mkdir()
        (out / "deep" / "pairs.txt").write_text("src dst\n" if self.header else "")
        progress(1, 1, "files")
        report.written("files", 1)


def scenario(**changes: Any) -> cosim.Scenario:
    return cosim.loads(SCENARIO, set=changes)


def test_what_a_format_does_not_declare_is_counted_as_lost(tmp_path: Path) -> None:
    done = cosim.translate(scenario(), Pairs(), tmp_path)
    lost = {entry.what: entry.count for entry in done.report.entries("lost")}
    assert lost == {
        "dependencies": 4 + 1,  # sum waits for work; the second job's send for its computation
        "computations": 4 + 1,
        "collectives": 8,
        "algorithms of collectives": 8,
        "groups of less than all ranks": 4,
        "roots other than the first rank": 4,
        "peers by mesh offset": 2,
        "streams of other names": 4,
        "endpoint delay": 8,
        "time of reductions": 4,
        "jobs beside the first": 1,
        "iterations after the first": 2,
        "later starts of jobs": 1,
        "priorities": 1,
        "weights": 1,
        "ranks on another endpoint than their number": 4 + 2,
    }
    assert {entry.what for entry in done.report.entries("left out")} == {
        "topology", "network model", "phases", "mesh axes",
    }  # fmt: skip


POOL = "memory: {kind: pool, rate: 1GB/s}\n"


def test_every_part_of_the_model_is_counted_where_it_is_used() -> None:
    from cosim.experiment.translate import source_of

    text = SCENARIO.replace("kind: compute, duration: 1500ns", "kind: memory, size: 1kB") + POOL
    source = source_of(cosim.loads(text.replace("mesh: {dp: 2", "rendezvous: true\n      mesh: {dp: 2")))
    used = {part for part in Says if count(part, source)}
    # rendezvous needs sends in the same job, tags need tags, and so on: they have tests of their own
    assert {Says.MEMORY, Says.SHARED_MEMORY} <= used
    assert used >= set(Says) - {Says.RENDEZVOUS, Says.TAGS, Says.CHANNELS, Says.FLOPS}


def test_strict_refuses_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(TranslationError, match="lost: 5 dependencies") as refused:
        cosim.translate(scenario(), Pairs(), tmp_path / "out", strict=True)
    assert "approximated" not in str(refused.value)
    assert not (tmp_path / "out").exists()


def test_files_and_report_are_in_the_folder(tmp_path: Path) -> None:
    told: list[tuple[int, int, str]] = []
    done = cosim.translate(scenario(), Pairs(header=True), tmp_path, progress=lambda *info: told.append(info))
    assert done.files == ("deep/pairs.txt",)
    assert told == [(1, 1, "files")]
    saved = json.loads((tmp_path / REPORT_FILE).read_text())
    assert saved["format"] == "Pairs"
    assert saved["report"] == done.report.to_json()
    page = str(done).splitlines()
    assert page[:2] == [f"scenario as Pairs: 1 file in {tmp_path}", "written:      files"]
    assert page[2] == "lost:         5 dependencies"


def test_a_second_translation_replaces_the_first_and_nothing_else(tmp_path: Path) -> None:
    small = scenario()
    cosim.translate(small, "goal", tmp_path)
    cosim.translate(small, "flow-list", tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir()) == [MANIFEST, "flow.txt", REPORT_FILE]


@pytest.mark.parametrize("name", ["schedule.goal", REPORT_FILE])
def test_a_translation_replaces_no_file_of_others(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(InputError, match=f"holds {name}, which cosim did not write"):
        cosim.translate(scenario(), "goal", tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "mine"


def test_a_report_s_list_can_t_reach_out_of_its_folder(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep")
    out = tmp_path / "out"
    out.mkdir()
    (out / MANIFEST).write_text(json.dumps({"files": ["../mine.txt"]}))
    cosim.translate(scenario(), Pairs(), out)
    assert (tmp_path / "mine.txt").read_text() == "keep"


def test_formats_are_plug_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    from cosim import registry

    point = EntryPoint("pairs", f"{Pairs.__module__}:Pairs", "cosim.formats")
    known = {**registry._all(), "cosim.formats": {"pairs": point}}
    monkeypatch.setattr(registry, "_all", lambda: known)
    assert find_format({"kind": "pairs", "header": True}) == Pairs(header=True)
    shown = CliRunner().invoke(app, ["list", "format", "pairs"])
    assert "header (default false)" in shown.stdout


def test_every_format_lists_itself_and_its_losses() -> None:
    assert GROUPS["cosim.formats"].noun == "format"
    for name in names("cosim.formats"):
        kind = find("cosim.formats", name)
        assert issubclass(kind, Format)
        assert isinstance(kind.says, frozenset)
        assert kind.__doc__


@pytest.mark.parametrize(
    ("to", "says"),
    [
        ("gaol", "there is no format 'gaol'; did you mean 'goal'"),
        ({"kind": "goal", "flie": "x"}, "unknown key 'flie'; did you mean 'file'"),
        ({"kind": "goal", "file": "../x"}, "file"),
        ({"file": "x"}, "needs the key 'kind'"),
    ],
)
def test_mistakes_in_the_format_are_named(to: Any, says: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=re.escape(says)):
        cosim.translate(scenario(), to, tmp_path)


def test_two_ranks_on_an_endpoint_are_refused(tmp_path: Path) -> None:
    shared = scenario(**{"jobs[1].placement.endpoints": [0, 7], "share_endpoints": True})
    for to in ("goal", "chakra", "htsim"):
        with pytest.raises(TranslationError, match="endpoint 0 has rank 3 of job 'one' and rank 0 of"):
            cosim.translate(shared, to, tmp_path)


def test_several_jobs_are_numbered_by_endpoint(tmp_path: Path) -> None:
    cosim.translate(scenario(), "goal", tmp_path)
    text = (tmp_path / "schedule.goal").read_text()
    assert text.startswith("num_ranks 8\n")
    assert "rank 4 {\n}" in text
    assert "rank 6 {\nl0: calc 5000 cpu 0\n" in text  # the job's start
    with pytest.raises(TranslationError, match="can't be numbered by rank"):
        cosim.translate(scenario(), {"kind": "goal", "numbering": "ranks"}, tmp_path)


def test_jobs_on_endpoints_read_back_with_the_same_times(tmp_path: Path) -> None:
    """Placement, several jobs, starts and iterations are all in the messages."""
    both = scenario()
    cosim.translate(both, "goal", tmp_path)
    work = {"kind": "goal", "path": str(tmp_path / "schedule.goal")}
    again = both.with_settings({"jobs": [{"workload": work}]})
    assert cosim.run(again).records.end_ps == cosim.run(both).records.end_ps


def test_groups_are_of_endpoints_in_the_order_of_their_ranks(tmp_path: Path) -> None:
    cosim.translate(scenario(), "chakra", tmp_path)
    groups = json.loads((tmp_path / "comm_groups.json").read_text())
    # ranks 0 to 3 of the first job sit on endpoints 3 to 0
    assert sorted(groups.values()) == [[1, 0], [3, 2], [3, 2, 1, 0]]


def test_the_command_prints_the_report(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(SCENARIO)
    arguments = ["translate", str(tmp_path / "s.yaml"), "--to", "{kind: goal, file: x.goal}"]
    out = str(tmp_path / "out")
    result = CliRunner().invoke(app, [*arguments, "--out", out, "--set", "jobs[0].iterations=1"])
    assert result.exit_code == 0, result.stderr
    assert result.stdout.splitlines()[0] == f"s as goal: 1 file in {out}"
    assert "lost:         priorities\n              weights\n" in result.stdout
    assert (tmp_path / "out" / "x.goal").exists()
    as_json = CliRunner().invoke(app, [*arguments, "--out", out, "--json"])
    assert json.loads(as_json.stdout)["lost"] == [
        {"what": "priorities", "count": 1, "why": ""}, {"what": "weights", "count": 1, "why": ""},
    ]  # fmt: skip


def test_a_format_without_a_simulator_says_so(tmp_path: Path) -> None:
    done = cosim.translate(scenario(), "goal", tmp_path)
    with pytest.raises(CosimError, match="starts no simulator"):
        done.run()


def test_open_loop_flows_carry_the_times_of_a_run(tmp_path: Path) -> None:
    from cosim.formats.flow_list.read import read_flows

    done = cosim.translate(scenario(), {"kind": "flow-list", "priority_group": 5, "port": 7}, tmp_path)
    messages = done.source.run.messages
    assert messages is not None
    flows = list(read_flows(tmp_path / "flow.txt"))
    assert sorted(flow.start_ps for flow in flows) == sorted(messages.start_ps.tolist())
    assert [flow.start_ps for flow in flows] == sorted(flow.start_ps for flow in flows)
    assert {(flow.priority_group, flow.port) for flow in flows} == {(5, 7)}
    columns = (messages.src, messages.dst, messages.size_bytes)
    pairs = sorted(zip(*(column.tolist() for column in columns), strict=True))
    assert sorted((flow.src, flow.dst, flow.size_bytes) for flow in flows) == pairs
    assert [entry.what for entry in done.report.entries("lost")][-1] == "dependencies between messages"


def test_htsim_triggers_replay_closed_loop_where_triggers_can_say_it(tmp_path: Path) -> None:
    ring = cosim.loads(
        """
topology: {kind: ring, endpoints: 8, rate: 400Gbps, latency: 500ns}
network: fair_share
jobs: [{workload: {kind: collective, collective: all_gather, size: 64KiB, ranks: 8}}]
"""
    )
    done = cosim.translate(ring, "htsim", tmp_path)
    assert not done.report.entries("lost")
    again = ring.with_settings({"jobs[0].workload": {"kind": "htsim", "path": str(tmp_path / "traffic.cm")}})
    one, two = cosim.run(ring).records, cosim.run(again).records
    assert (one.end_ps, one.num_messages) == (two.end_ps, two.num_messages)


def finished_by_csg_htsim(matrix: Matrix, seed: int) -> list[int]:
    """Flows in an order in which csg-htsim might end them: a sender fires one trigger, a receiver none."""
    draw = random.Random(seed)
    left = {trigger.number: trigger.count or 1 for trigger in matrix.triggers}
    running = [at for at, flow in enumerate(matrix.connections) if not flow.trigger]
    ended = []
    while running:
        at = running.pop(draw.randrange(len(running)))
        ended.append(at)
        fired = matrix.connections[at].send_done
        if fired:
            left[fired] -= 1
            assert left[fired] >= 0, "htsim aborts where a trigger is fired too often"
            if left[fired] == 0:
                running += [k for k, flow in enumerate(matrix.connections) if flow.trigger == fired]
    return ended


@pytest.mark.parametrize("seed", range(3))
def test_csg_htsim_runs_every_flow_of_a_job_to_its_end(seed: int, tmp_path: Path) -> None:
    """Of the triggers that only receivers would fire, 16 of 4,512 flows of such a job finished there."""
    training = cosim.loads(
        """
topology: {kind: ring, endpoints: 8, rate: 400Gbps, latency: 500ns}
network: fair_share
jobs:
  - iterations: 2
    workload:
      kind: operations
      mesh: {dp: 4, tp: 2}
      programs:
        - operations:
            - {name: a, kind: collective, collective: all_reduce, size: 64KiB, axes: [tp]}
            - {name: b, kind: collective, collective: all_to_all, size: 64KiB, axes: [dp], deps: [a]}
            - {name: c, kind: collective, collective: all_reduce, size: 9KiB, axes: [dp], deps: [b]}
"""
    )
    done = cosim.translate(training, "htsim", tmp_path)
    matrix, _ = read_matrix(tmp_path / "traffic.cm")
    ended = finished_by_csg_htsim(matrix, seed)
    assert sorted(ended) == list(range(len(matrix.connections)))
    messages = cosim.run(training).records
    carriers = len(matrix.connections) - messages.num_messages
    why = "the trigger of a flow that others wait for in several ways comes by a message of 1 byte"
    assert carriers == sum(entry.count for entry in done.report.entries("approximated") if entry.why == why)
    with pytest.raises(TranslationError, match="on the last acknowledgement"):
        done.report.check_strict()
