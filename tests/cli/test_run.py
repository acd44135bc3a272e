"""The command line, as a person meets it."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

import cosim
from cosim import cli
from cosim.engine import replay as engine
from cosim.engine.records import ProgressInfo
from cosim.errors import NetworkError
from cosim.files.folder import MANIFEST
from cosim.results.stored_run import load_run

SCENARIO = """\
topology: {kind: ring, endpoints: 4, rate: 80Gbps, latency: 0ns}
network: congestion_aware
jobs:
  - workload: {kind: collective, collective: all_reduce, ranks: 4, size: 4MB}
    iterations: 2
"""
STEP_MS = 0.1
"""A quarter of 4 MB at 10 bytes a nanosecond; a ring all-reduce takes 6 of them."""


class Outcome:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


class Cosim:
    """Calls the command in this process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch, self._capsys = monkeypatch, capsys

    def __call__(self, *arguments: object) -> Outcome:
        self._monkeypatch.setattr(sys, "argv", ["cosim", *map(str, arguments)])
        self._capsys.readouterr()
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        out, err = self._capsys.readouterr()
        code = stopped.value.code
        return Outcome(code if isinstance(code, int) else 0, out, err)


@pytest.fixture
def cosim_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cosim:
    return Cosim(monkeypatch, capsys)


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(SCENARIO)
    return path


def test_run_prints_the_page(cosim_command: Cosim, scenario: Path) -> None:
    done = cosim_command("run", scenario)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("small: Ring(4) (4 endpoints), network congestion_aware\n1.2 ms simulated")


def test_json_is_all_there_is_on_stdout(cosim_command: Cosim, scenario: Path) -> None:
    done = cosim_command("run", scenario, "--json")
    summary = json.loads(done.out)
    assert summary["jobs"][0]["iteration_ps"] == [round(6 * STEP_MS * 1e9)] * 2
    assert summary["name"] == "small"


def test_settings_and_release_reach_the_run(cosim_command: Cosim, scenario: Path) -> None:
    one = json.loads(cosim_command("run", scenario, "--json").out)
    two = json.loads(cosim_command("run", scenario, "--json", "--release", "engine").out)
    three = json.loads(cosim_command("run", scenario, "--json", "--set", "jobs[0].iterations=1").out)
    assert (one["release"], two["release"]) == ("network", "engine")
    assert one["digest"] == two["digest"] != three["digest"]
    assert len(three["jobs"][0]["iteration_ps"]) == 1


def test_out_writes_a_folder_that_can_be_read_and_run_again(
    cosim_command: Cosim, scenario: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "a" / "b"
    done = cosim_command("run", scenario, "--out", folder, "--set", "record.messages=npz")
    assert done.err == f"written to {folder}\n"
    names = {path.name for path in folder.iterdir()} - {MANIFEST}
    assert names == {"summary.json", "columns.npz", "messages.npz", "timeline.json", "scenario.yaml"}
    stored = load_run(folder)
    assert len(stored.messages.end_ps) == stored.summary.num_messages == 2 * 4 * 6
    assert json.loads((folder / "timeline.json").read_text())["traceEvents"]
    again = cosim.run(folder / "scenario.yaml")
    assert again.digest == stored.summary.digest


def test_messages_as_parquet(cosim_command: Cosim, scenario: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="needs Arrow: pip install '.[parquet]'")
    cosim_command("run", scenario, "--out", tmp_path / "out", "--set", "record.messages=parquet")
    messages = load_run(tmp_path / "out").messages
    assert (messages.size_bytes == 10**6).all()


def test_compare_says_what_differs(cosim_command: Cosim, scenario: Path, tmp_path: Path) -> None:
    cosim_command("run", scenario, "--out", tmp_path / "a")
    cosim_command("run", scenario, "--out", tmp_path / "b", "--set", "topology.rate=160Gbps")
    page = cosim_command("compare", tmp_path / "a", tmp_path / "b")
    assert page.code == 0
    assert "topology.rate" in page.out
    assert (
        json.loads(cosim_command("compare", tmp_path / "a", tmp_path / "b", "--json").out)["same_digest"]
        is False
    )
    lost = cosim_command("compare", tmp_path / "a", tmp_path / "c")
    assert lost.code == 2
    assert "there is no directory" in lost.err


def test_a_mistake_is_said_on_stderr_with_code_2(cosim_command: Cosim, scenario: Path) -> None:
    scenario.write_text(SCENARIO.replace("iterations", "itrations"))
    done = cosim_command("run", scenario)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(
        f"error: {scenario}:5: jobs[0].itrations: unknown key 'itrations'; did you mean"
    )
    assert "Traceback" not in done.err


def test_a_run_that_cannot_go_on_ends_with_code_1(
    cosim_command: Cosim, scenario: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise NetworkError("the network went away")

    monkeypatch.setattr(engine, "replay", broken)
    done = cosim_command("run", scenario)
    assert (done.code, done.err) == (1, "error: the network went away\n")


def test_a_defect_is_not_hidden(
    cosim_command: Cosim, scenario: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(engine, "replay", broken)
    with pytest.raises(ZeroDivisionError):
        cosim_command("run", scenario)


def test_a_warning_goes_to_stderr_and_into_the_results(cosim_command: Cosim, scenario: Path) -> None:
    done = cosim_command("run", scenario, "--json", "--set", "jobs[0].weight=3")
    assert done.err.startswith("warning: --set jobs[0].weight=3: ")
    assert any("jobs[0].weight=3" in warning for warning in json.loads(done.out)["warnings"])
    assert cosim_command("run", scenario, "--quiet", "--set", "jobs[0].weight=3").err == ""


def test_an_interrupted_run_keeps_what_was_computed(
    cosim_command: Cosim, scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = engine.replay

    def interrupted(*arguments: object, **options: object) -> object:
        def stop(info: ProgressInfo) -> None:
            if info.operations_done:
                raise KeyboardInterrupt

        monkeypatch.setattr(engine, "_PROGRESS_S", 0.0)
        return real(*arguments, **(options | {"progress": stop}))  # type: ignore[arg-type]

    monkeypatch.setattr(engine, "replay", interrupted)
    done = cosim_command("run", scenario, "--out", tmp_path / "out")
    assert done.code == 130
    assert "what was computed until then is kept" in done.err
    assert "INTERRUPTED" in done.out
    summary = load_run(tmp_path / "out").summary
    assert summary.interrupted
    assert len(summary.jobs[0].iteration_ps) == 1


def test_a_folder_that_cannot_be_written_is_said_before_the_run(
    cosim_command: Cosim, scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("the run has begun")

    monkeypatch.setattr(engine, "replay", never)
    (tmp_path / "taken").write_text("")
    done = cosim_command("run", scenario, "--out", tmp_path / "taken")
    assert (done.code, done.out) == (2, "")
    assert "taken: is a file" in done.err
    done = cosim_command("run", scenario, "--out", tmp_path / "taken" / "below")
    assert done.code == 2
    assert "can't write the run: Not a directory" in done.err


def test_messages_that_nobody_would_see_draw_a_warning(cosim_command: Cosim, scenario: Path) -> None:
    done = cosim_command("run", scenario, "--set", "record.messages=true")
    assert done.err == (
        "warning: --set record.messages=true: has no effect: "
        "messages are written with --out or --report only\n"
    )


def test_list_shows_every_name_with_a_line(cosim_command: Cosim) -> None:
    page = cosim_command("list").out
    for name in (
        "leaf_spine",
        "congestion_aware",
        "transformer",
        "halving_doubling",
        "packed",
        "h100-sxm",
        "ecmp",
    ):
        assert re.search(rf"^  {name} +\S", page, re.MULTILINE), name
    assert "can't be imported" not in page


def test_list_of_one_kind_in_singular_and_plural(cosim_command: Cosim) -> None:
    assert cosim_command("list", "topology").out == cosim_command("list", "topologies").out
    assert "transformer" not in cosim_command("list", "topology").out
    lost = cosim_command("list", "topolgy")
    assert lost.code == 2
    assert "did you mean 'topology'?" in lost.err


def test_list_of_one_name_shows_fields_units_and_defaults(cosim_command: Cosim) -> None:
    page = cosim_command("list", "workload", "periodic").out
    assert "compute (required)\n      a time such as 10us" in page
    assert "ranks (default 2)\n      a whole number" in page
    assert "of_a100" not in page
    gpu = cosim_command("list", "gpu", "a100-80gb").out
    assert "NVIDIA A100" in gpu
    lost = cosim_command("list", "topology", "rign")
    assert lost.code == 2
    assert "did you mean 'ring'?" in lost.err


def test_list_shows_the_fields_of_mappings_within_the_fields(cosim_command: Cosim) -> None:
    page = cosim_command("list", "topology", "leaf_spine").out
    assert "\nhosts\nfields:\n  gpus (required)\n" in page
    page = cosim_command("list", "topology", "graph").out
    assert "each a mapping of from, to, rate" in page
    assert "\nlinks[...]\nfields:\n  from (required)\n" in page
    page = cosim_command("list", "workload", "operations").out
    assert "\nprograms[...].operations[...]\nfields:\n" in page
    assert "one of compute, memory, collective, send, recv" in page


def test_list_of_the_scenario_itself(cosim_command: Cosim) -> None:
    page = cosim_command("list", "scenario").out
    assert "share_endpoints (default false)" in page
    assert "iterations (default 1)" in page


def test_version(cosim_command: Cosim) -> None:
    assert cosim_command("--version").out == f"cosim {cosim.__version__}\n"


def test_the_version_is_the_packages() -> None:
    from importlib.metadata import version

    assert version("cosim-net") == cosim.__version__
