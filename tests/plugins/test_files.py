"""``{plugin: FILE.py:CLASS}`` beside the scenario, for every group and wherever a scenario is read."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

import cosim
from cosim.cli import main
from cosim.errors import InputError, NetworkError
from cosim.experiment.build import build
from cosim.experiment.scenario import load, loads
from cosim.experiment.serve import serve_network
from cosim.network.congestion.settings import Congestion
from cosim.network.hybrid_spec import Hybrid
from cosim.protocol.session import ServerConfig
from cosim.written import plain

PACKAGE = Path(__file__).parent / "one_of_each" / "one_of_each"

TEXT = """
topology: {plugin: topology.py:Boards, boards: 2, gpus: 2, board_rate: 3200Gbps, rate: 400Gbps, latency: 1us}
network: NETWORK
jobs: [{workload: {plugin: workload.py:Relay, ranks: 2, size: 1MB, work: 10us}, placement: placement.py:Last}]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files of plug-ins beside a scenario, and another folder to work in."""
    beside = tmp_path / "beside"
    shutil.copytree(PACKAGE, beside, ignore=shutil.ignore_patterns("__pycache__"))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    return beside


def write(folder: Path, network: str = "{plugin: network.py:Constant, time: 5us}", text: str = TEXT) -> Path:
    path = folder / "question.yaml"
    path.write_text(text.replace("NETWORK", network))
    return path


def test_all_of_a_scenario_may_come_from_files(folder: Path) -> None:
    scenario = load(write(folder))
    assert cosim.run(scenario).records.end_ps == 25_000_000  # work, message, work
    assert build(scenario).jobs[0].endpoints.tolist() == [2, 3]


def test_under_hybrid_and_under_a_wrapper_files_lie_beside_the_scenario(folder: Path) -> None:
    control = "{kind: mltcp, over: {plugin: control.py:Step, cut: 0.3}}"
    up, out = "{plugin: network.py:Constant, time: 5us}", f"{{model: congestion, control: {control}}}"
    path = write(folder, f"{{model: hybrid, scale_up: {up}, scale_out: {out}}}")
    network = load(path).network
    assert isinstance(network, Hybrid)
    assert plain(network.scale_up) == {"plugin": f"{folder}/network.py:Constant", "time": "5000000ps"}
    assert isinstance(network.scale_out, Congestion)
    assert network.scale_out.control.inner().model_dump() == {"cut": 0.3}


def test_set_replaces_a_plug_in_and_its_settings(folder: Path) -> None:
    path = write(folder, "network.py:Constant")
    slow = load(path, ["network.time=7us"])
    assert cosim.run(slow).records.end_ps == 27_000_000
    with pytest.raises(InputError, match=r"question\.yaml:3: network\.time: is missing"):
        load(path)
    named = load(path, ["network=fair_share", "jobs[0].placement=packed"])
    assert build(named).jobs[0].endpoints.tolist() == [0, 1]


def test_the_served_network_of_a_scenario_finds_its_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[ServerConfig] = []
    monkeypatch.setattr("cosim.experiment.serve.run_server", lambda served, *_, **__: made.append(served))
    control = "{model: congestion, control: {plugin: control.py:Step}}"
    serve_network(str(write(folder, control)), "unix:/tmp/nobody")
    assert made[0].make().describe().name == "congestion"
    with pytest.raises(InputError, match=r"there is no file control\.py"):
        serve_network(control, "unix:/tmp/nobody")
    os.chdir(folder)
    serve_network(control, "unix:/tmp/nobody")
    assert made[1].make().describe().name == "congestion"


@pytest.mark.parametrize("workers", [1, 2])
def test_a_sweep_runs_them_in_any_number_of_processes(folder: Path, workers: int) -> None:
    write(folder)
    sweep = folder / "sweep.yaml"
    axes = "{time: {network.time: [5us, 6us, 7us]}}"
    sweep.write_text(f"scenario: question.yaml\naxes: {axes}\nmeasures: [iteration]\n")
    done = cosim.sweep(cosim.Sweep.load(sweep), workers=workers)
    assert [one.measures["iteration"] for one in done.runs] == [25e6, 26e6, 27e6]


def test_the_scenario_as_written_names_the_file_again(folder: Path) -> None:
    scenario = load(write(folder))
    network = plain(scenario.network)
    assert network == {"plugin": f"{folder}/network.py:Constant", "time": "5000000ps"}
    again = loads(TEXT.replace("NETWORK", str(network)), ["release=engine"], base=folder)
    assert cosim.run(again).digest == cosim.run(scenario).digest


@pytest.mark.parametrize(
    ("network", "said"),
    [
        ("{plugin: network.py}", "'network.py' is not FILE.py:CLASS, as in my_plugin.py:MyClass"),
        ("{plugin: netwrk.py:Constant}", "there is no file .*/beside/netwrk.py"),
        ("{plugin: network.py:Constnt}", "has no class 'Constnt'; did you mean 'Constant'.; its networks: C"),
        ("{plugin: network.py:Constant, tim: 5us}", "unknown key 'tim'; did you mean 'time'"),
        ("{plugin: workload.py:Relay}", "Relay in .*/workload.py is not a NetworkSpec: write class Relay"),
        ("{plugin: broken.py:X}", r"broken\.py:2: can't be imported: ZeroDivisionError: division by zero"),
        ("{plugin: syntax.py:X}", r"syntax\.py:1: can't be imported: SyntaxError"),
    ],
)
def test_what_is_wrong_is_said_with_file_and_line(folder: Path, network: str, said: str) -> None:
    (folder / "broken.py").write_text("zero = 0\nX = 1 / zero\n")
    (folder / "syntax.py").write_text("class X(:\n")
    with pytest.raises(InputError, match=rf"question\.yaml:3: network\.(plugin|tim): .*{said}"):
        load(write(folder, network))


def test_what_a_plug_in_makes_of_settings_that_cannot_be_is_refused_in_its_line(folder: Path) -> None:
    lines = [
        "from cosim.plugins import Gpu, GpuSpec",
        "class Mine(GpuSpec):",
        "    def build(self, context):",
        "        return Gpu(peak_flops={'bf16': 1e15}, memory_rate=3e12)",
    ]
    (folder / "gpu.py").write_text("\n".join(lines))
    work = "{kind: model, model: {kind: llama3-8b, layers: 2}, gpu: gpu.py:Mine, parallel: {dp: 2}, batch: 2}"
    path = write(folder, "fair_share", TEXT[: TEXT.index("jobs")] + f"jobs: [{{workload: {work}}}]")
    said = r"gpu\.py:4: build: Gpu\(memory_rate=\.\.\.\): 3000000000000.0 needs a rate unit"
    with pytest.raises(InputError, match=said):
        cosim.run(path)


def test_a_file_that_changed_is_read_again(folder: Path) -> None:
    path = write(folder)
    before = cosim.run(load(path)).records.end_ps
    file = folder / "network.py"
    file.write_text(file.read_text().replace("else self.time_ps", "else 2 * self.time_ps"))
    assert cosim.run(load(path)).records.end_ps == before + 5_000_000


def test_a_file_may_import_files_beside_it_and_each_folder_has_its_own(folder: Path) -> None:
    other = folder.with_name("other")
    shutil.copytree(folder, other)
    for place, factor in ((folder, 2), (other, 3)):
        (place / "factors.py").write_text(f"FACTOR = {factor}\n")
        file = place / "network.py"
        text = file.read_text().replace("else self.time_ps", "else FACTOR * self.time_ps")
        file.write_text(
            text.replace("import numpy as np\n", "import numpy as np\nfrom factors import FACTOR\n", 1)
        )
    before = set(sys.modules), list(sys.path)
    assert cosim.run(load(write(folder))).records.end_ps == 30_000_000  # work, message, work
    assert cosim.run(load(write(other))).records.end_ps == 35_000_000
    assert "factors" not in set(sys.modules) - before[0]
    assert sys.path == before[1]
    (folder / "factors.py").write_text("FACTOR = 4\n")  # read again, as the file itself would be
    assert cosim.run(load(write(folder))).records.end_ps == 40_000_000


def test_a_class_may_come_from_a_file_beside_it_in_a_sweep_too(folder: Path) -> None:
    (folder / "mine.py").write_text("from network import Constant\n")
    write(folder, "{plugin: mine.py:Constant, time: 5us}")
    sweep = folder / "sweep.yaml"
    sweep.write_text(
        "scenario: question.yaml\naxes: {t: {network.time: [5us, 6us]}}\nmeasures: [iteration]\n"
    )
    done = cosim.sweep(cosim.Sweep.load(sweep), workers=2)
    assert [one.measures["iteration"] for one in done.runs] == [25e6, 26e6]


def test_a_network_that_starts_what_waits_at_the_horizon_is_told_so(folder: Path) -> None:
    file = folder / "network.py"
    rule = " & (self.flows[:, 2] < horizon_ps)"
    assert rule in file.read_text()
    file.write_text(file.read_text().replace(rule, ""))
    work = "workload: {kind: collective, collective: all_gather, size: 1MB, ranks: 2}"
    jobs = f"jobs: [{{{work}}}, {{{work}, placement: {{kind: explicit, endpoints: [2, 5]}}}}]"
    text = TEXT[: TEXT.index("jobs")].replace("gpus: 2", "gpus: 3") + jobs
    other = "{plugin: network.py:Constant, time: 5us}"
    path = write(folder, f"{{model: hybrid, scale_up: {other}, scale_out: fair_share}}", text)
    with pytest.raises(NetworkError, match="what starts at the horizon waits for the next advance"):
        cosim.run(path)


@pytest.mark.parametrize("to", ["format.py:Pairs", {"plugin": "format.py:Pairs", "header": True}])
def test_translate_takes_one(folder: Path, monkeypatch: pytest.MonkeyPatch, to: Any) -> None:
    monkeypatch.chdir(folder)
    made = cosim.translate(write(folder), to, "out")
    lines = Path("out/pairs.txt").read_text().splitlines()
    assert lines[-4:] == [
        f"job0 {what}" for what in ("work compute", "hand send", "take recv", "work compute")
    ]
    assert (lines[0] == "job operation kind") is (to != "format.py:Pairs")
    assert made.format_name == "Pairs"


def test_prove_takes_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    words = ["prove", "collective.py:GatherOnce", "--collective", "all_gather", "--ranks", "5"]
    monkeypatch.setattr("sys.argv", ["cosim", *words])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code in (0, None)
    assert "proved: gather_once, all_gather over 5 ranks" in capsys.readouterr().out
