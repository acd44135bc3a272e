"""Code that a scenario names is asked about before it is run: at a terminal, and where there is none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cosim import cli
from cosim.errors import InputError
from cosim.experiment.run import read_source, run
from cosim.experiment.search.design import read_design
from cosim.files import trust
from cosim.files.trust import guarded
from cosim.results.report.document import report
from cosim.results.stored_run import load_run
from tests.cli.processes import OWN

PLACEMENT = """
from pathlib import Path
import numpy as np
from cosim.plugins import Placement

with (Path(__file__).parent / "ran").open("a") as file:
    file.write("once\\n")

class Mine(Placement):
    '''In order'''
    def choose(self, wanted):
        return np.arange(4, dtype=np.int32)
"""
SCENARIO = """
topology: {kind: ring, endpoints: 4, rate: 80Gbps, latency: 0ns}
network: fair_share
jobs:
  - workload: {kind: collective, collective: all_reduce, ranks: 4, size: 4MB}
    placement: mine.py:Mine
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One with code in it, and a home where nothing is trusted."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    place = tmp_path / "got"
    place.mkdir()
    (place / "mine.py").write_text(PLACEMENT)
    (place / "s.yaml").write_text(SCENARIO)
    return place


def ran(folder: Path) -> bool:
    return (folder / "ran").exists()


def _answering(asked: list[str], *, yes: bool) -> trust.Ask:
    """Somebody who notes what was asked."""

    def answer(question: str) -> bool:
        asked.append(question)
        return yes

    return answer


def of_a_stranger(monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    """As if another user owned it: only root can give files away."""
    known = file.resolve()
    monkeypatch.setattr(trust, "_foreign", lambda path: f"{path} is eve's" if path.resolve() == known else "")


def at_a_terminal(folder: Path, answer: str, *arguments: str) -> tuple[int, str]:
    """A command whose standard input and error are a terminal, on which somebody types."""
    user, command = os.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", OWN, "run", "s.yaml", *arguments],
        cwd=folder, stdin=command, stdout=subprocess.DEVNULL, stderr=command,
    ) as process:  # fmt: skip
        os.close(command)
        os.write(user, answer.encode())
        said = b""
        try:
            while part := os.read(user, 4096):
                said += part
        except OSError:  # the other side is closed
            pass
        os.close(user)
        return process.wait(), said.decode()


def test_at_a_terminal_code_is_named_and_asked_about_once(folder: Path) -> None:
    code, said = at_a_terminal(folder, "n\n")
    assert code == 2
    assert not ran(folder)
    assert "s.yaml:6: jobs[0].placement: mine.py:Mine" in said
    assert "cosim has run none from there before" in said
    assert "error: s.yaml: not run: its code is not trusted" in said
    code, said = at_a_terminal(folder, "y\n")
    assert (code, ran(folder)) == (0, True)
    assert trust.trusted_file().read_text() == f"{folder}\n"
    code, said = at_a_terminal(folder, "")
    assert code == 0
    assert "[y/N]" not in said


def test_without_a_terminal_own_code_runs_and_a_strangers_does_not(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = CliRunner().invoke(cli.app, ["run", str(folder / "s.yaml"), "-q"])
    assert (done.exit_code, ran(folder)) == (0, True)
    (folder / "ran").unlink()
    (folder / "mine.py").write_text(PLACEMENT + "\n# another\n")
    for file in (folder / "s.yaml", folder / "mine.py", folder):
        of_a_stranger(monkeypatch, file)
        done = CliRunner().invoke(cli.app, ["run", str(folder / "s.yaml"), "-q"])
        assert isinstance(done.exception, InputError)
        assert f"{file} is eve's" in str(done.exception)
        assert "--trust" in str(done.exception)
        assert "\n" not in str(done.exception)
        assert not ran(folder)
    done = CliRunner().invoke(cli.app, ["run", str(folder / "s.yaml"), "-q", "--trust"])
    assert (done.exit_code, ran(folder)) == (0, True)
    done = CliRunner().invoke(cli.app, ["run", str(folder / "s.yaml"), "-q"])
    assert done.exit_code == 0


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("network: {command: [./server, --fast]}", "network.command: ['./server', '--fast']"),
        ("jobs: [{workload: {kind: script, script: train.py}}]", "jobs[0].workload.script: train.py"),
        ("scenario: x.yaml\naxes: {a: {network: [a.py:B]}}", "axes.a.network[0]: a.py:B"),
        ("scenario: x.yaml\naxes: {}\nexecutor: dask://elsewhere:1", "executor: dask://elsewhere:1"),
        (
            "scenario: x.yaml\naxes: {}\nexecutor: {kind: slurm, options: {slurm_setup: [x]}}",
            "executor.options",
        ),
        ("axes: {}\noptimizer: {plugin: a.py:B}", "optimizer.plugin: a.py:B"),
    ],
)
def test_whatever_names_code_is_named(tmp_path: Path, text: str, named: str) -> None:
    (tmp_path / "s.yaml").write_text(text)
    asked: list[str] = []
    read = read_design if "optimizer" in text else read_source
    with (
        guarded(accepted=False, ask=_answering(asked, yes=False)),
        pytest.raises(InputError, match="not run"),
    ):
        read(tmp_path / "s.yaml")
    assert named in asked[0]


def test_a_checkout_is_trusted_as_a_whole_and_a_home_never(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder.parent / ".git").mkdir()
    asked: list[str] = []
    with guarded(accepted=False, ask=_answering(asked, yes=True)):
        read_source(folder / "s.yaml")
    assert f"whatever lies in {folder.parent} later" in asked[0]
    trust.trusted_file().unlink()
    monkeypatch.setenv("HOME", str(folder))
    with guarded(accepted=False, ask=_answering(asked, yes=True)):
        read_source(folder / "s.yaml")
        read_source(folder / "s.yaml")
    assert len(asked) == 2
    assert "Run it, this time?" in asked[1]
    assert not trust.trusted_file().exists()


def test_what_reads_a_run_executes_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    run(folder / "s.yaml", out=folder / "out")
    (folder / "ran").unlink()
    load_run(folder / "out")
    report([load_run(folder / "out")])
    for arguments in (["compare", "out", "out"], ["report", "out", "-o", "out.html"]):
        done = CliRunner().invoke(cli.app, arguments)
        assert done.exit_code == 0, done.output
    assert not ran(folder)


def test_a_mark_of_a_download_and_another_owner_are_seen(folder: Path) -> None:
    file = folder / "s.yaml"
    assert trust._foreign(file) == ""
    try:
        os.setxattr(file, "user.xdg.origin.url", b"https://example.org/s.yaml")
    except OSError:
        pytest.skip("this file system keeps no attributes")
    assert trust._foreign(file) == f"{file} was downloaded"
    if os.getuid() == 0:
        os.chown(file, 65534, -1)
        assert "'s" in trust._foreign(file)
