"""A package of somebody else's, with one plug-in of each kind, installed and used by a scenario."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from cosim.registry import GROUPS

HERE = Path(__file__).parent
SCENARIO = HERE / "one-of-each.yaml"
PATHS = HERE / "one-of-each-paths.yaml"
SWEEP = HERE / "one-of-each-sweep.yaml"
DESIGN = HERE / "one-of-each-design.yaml"
CABLES = HERE / "one-of-each-cables.yaml"

RUN = """
import json, sys
import cosim
from tests.examples.pages import run_command
scenario, paths, cables, unnamed, sweep, design, out, *commands = sys.argv[1:]
run, balanced = cosim.run(scenario), cosim.run(paths)
translation = cosim.translate(scenario, {"kind": "pairs", "header": True}, out)
print(json.dumps({
    "iterations": {job.name: job.iteration_mean_ps for job in run.summary.jobs},
    "starts": {job.name: job.start_ps for job in run.records.jobs},
    "compute": {job.name: job.compute.mean_ps for job in run.summary.jobs},
    "communication": {job.name: job.communication.mean_ps for job in run.summary.jobs},
    "endpoints": {job.name: job.endpoints.tolist() for job in run.records.jobs},
    "notes": {job.name: job.workload.report.assumed for job in run.records.jobs},
    "sizes": {job.name: job.workload.report.read for job in run.records.jobs},
    "files": translation.files,
    "balanced": balanced.summary.balancing.used,
    "scheduled": str(balanced.summary.scheduling.jobs),
    "cabled": [cosim.run(each).records.end_ps for each in (cables, unnamed)],
    "swept": cosim.sweep(sweep).trials.iteration_ps.tolist(),
    "tried": [one.labels[0] for one in cosim.search(design).tried],
    "commands": {each: run_command("cosim " + each) for each in commands},
}))
"""
STUDY = "study twice ring.yaml --with rate=40Gbps"
PROVE = "prove {} --collective {} --ranks 6"
COMMANDS = (
    "analyse sent --json",
    STUDY,
    f"{STUDY} --store store --workers 2",
    "list",
    "list network constant",
    PROVE.format("ring", "barrier"),
    PROVE.format("dissemination", "all_gather"),
)


@pytest.fixture(scope="module")
def answer(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a process answers that finds the package, built and installed by pip, without an index."""
    folder = tmp_path_factory.mktemp("package")
    shutil.copytree(HERE / "one_of_each", folder / "source")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    where = ["--no-build-isolation", "--target", str(folder / "site"), str(folder / "source")]
    subprocess.run([*pip, *where], check=True)
    shutil.copy(HERE / "one-of-each-cables.txt", folder)
    unnamed = folder / "unnamed.yaml"
    unnamed.write_text(CABLES.read_text().replace("format: lines, ", ""))
    (folder / "sent").write_text("# bytes\na b 100\nb c 100\nc a 100\n")
    (folder / "ring.yaml").write_text(yaml.safe_dump(yaml.safe_load(DESIGN.read_text())["scenario"]))
    files = map(str, (SCENARIO, PATHS, CABLES, unnamed, SWEEP, DESIGN, folder / "pairs"))
    found = subprocess.run(
        [sys.executable, "-c", RUN, *files, *COMMANDS],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(folder / "site"), os.environ["PYTHONPATH"]))},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    pairs = (folder / "pairs" / "pairs.txt").read_text().splitlines()
    return {**json.loads(found.stdout), "pairs": pairs}


def test_the_scenario_names_one_of_each_kind() -> None:
    import tomllib

    project = tomllib.loads((HERE / "one_of_each" / "pyproject.toml").read_text())["project"]
    assert {*project["entry-points"]} == {*GROUPS}
    text = SCENARIO.read_text() + PATHS.read_text() + SWEEP.read_text() + DESIGN.read_text()
    text += CABLES.read_text()
    for group, points in project["entry-points"].items():
        (name,) = points
        assert group in ("cosim.formats", "cosim.studies") or name in text, f"{name} of {group}"


def test_its_library_says_which_kernels_communicate(answer: dict[str, Any]) -> None:
    assert (answer["compute"]["traced"], answer["communication"]["traced"]) == (0, 60 * 10**6)


def test_its_balancer_takes_every_path_in_turn(answer: dict[str, Any]) -> None:
    assert answer["balanced"] == 4


def test_its_format_of_topologies_is_named_or_found_by_content(answer: dict[str, Any]) -> None:
    assert answer["cabled"] == [10**9] * 2  # half of 50 MB, there and back, at 400 Gbit/s


def test_its_format_of_captures_is_found_by_content(answer: dict[str, Any]) -> None:
    (analysis,) = json.loads(answer["commands"]["analyse sent --json"][1])["analyses"]
    assert (analysis["kind"], analysis["size_bytes"]) == ("bytes", 300)
    assert analysis["parts"][0]["patterns"][0]["name"] == "ring"


def test_its_scheduler_is_asked(answer: dict[str, Any]) -> None:
    assert "priority=0" in answer["scheduled"]


def test_its_executor_runs_a_sweep_and_what_it_lost_again(answer: dict[str, Any]) -> None:
    assert answer["swept"] == [6e8, 6e8, 12e8, 12e8]


def test_its_study_asks_for_runs_and_reads_them(answer: dict[str, Any]) -> None:
    for command in (STUDY, f"{STUDY} --store store --workers 2"):
        code, text = answer["commands"][command]
        assert (code, text.split()) == (0, ["now", "then", "messages", "600000000", "1200000000", "24"])


def test_its_optimizer_says_what_is_run(answer: dict[str, Any]) -> None:
    assert answer["tried"] == ["40Gbps", "60Gbps", "50Gbps"]


def test_what_its_plug_ins_say_is_what_happens(answer: dict[str, Any]) -> None:
    times = answer["iterations"]
    assert times["relay.0"] == times["relay.1"] == 25_000_000  # work, a message of the network, work
    assert times["reader"] == 20 * 10**9  # one after the other, both of the upper half
    assert times["gather"] == 5_000_000  # all messages at once, none of which takes longer
    assert (answer["starts"]["relay.0"], answer["starts"]["relay.1"]) == (0, 10**9)
    assert answer["endpoints"]["relay.0"] == [14, 15]  # the last, then the last of those that are left
    assert answer["endpoints"]["relay.1"] == [12, 13]
    assert "16777216 parameters" in answer["sizes"]["perceptron"][0]
    assert "TPU v5p" in answer["notes"]["perceptron"][0]
    assert "the host waits after each pass" in answer["notes"]["language"]
    assert "issued by two threads: their page" in answer["notes"]["language"][0]
    assert answer["files"] == ["pairs.txt"]
    assert answer["pairs"][0] == "job operation kind"
    assert "relay.0 work compute" in answer["pairs"]


def test_computation_takes_its_flops_over_the_peak_of_their_gpu_at_least(answer: dict[str, Any]) -> None:
    flops = 3 * 2 * 128 * 4096 * 4096  # a product forward, two back
    assert answer["compute"]["perceptron"] > flops / 459e12 * 1e12


def test_a_framework_of_theirs_says_what_the_optimizer_keeps(answer: dict[str, Any]) -> None:
    count, kept = (
        float(re.search(f"{name} ([\\d.]+) {unit}", answer["sizes"]["language"][number])[1])  # type: ignore[index]
        for number, name, unit in ((0, ":", "M"), (1, "optimizer", "MiB"))
    )
    assert kept * 2**20 == pytest.approx(8 * count * 1e6, rel=1e-3)


def test_lists_show_them(answer: dict[str, Any]) -> None:
    text = answer["commands"]["list"][1]
    for name in (
        "constant",
        "step",
        "boards",
        "relay",
        "mlp",
        "tpu",
        "two_threads",
        "waiting",
        "gather_once",
        "pairs",
    ):
        assert re.search(rf"^  {name}  +\w", text, re.MULTILINE), name
    text = answer["commands"]["list network constant"][1]
    assert "Every message takes the same time" in text
    assert "time (required)" in text


def test_what_could_carry_a_collective_counts_them_in(answer: dict[str, Any]) -> None:
    code, text = answer["commands"][PROVE.format("ring", "barrier")]
    assert code == 2
    assert "barrier over 6 ranks can be carried by: chakra, dissemination\n" in text
    _, text = answer["commands"][PROVE.format("dissemination", "all_gather")]
    carriers = "bruck, chakra, direct, gather_once, get_direct, msccl, mscclpp, multi_ring, nccl, ring, tacos"
    assert f"all_gather over 6 ranks can be carried by: {carriers}\n" in text
