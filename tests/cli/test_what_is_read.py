"""What a command reads, it never replaces: whatever file it is told to write."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import cosim
from cosim.cli import app

SCENARIO = """
topology: {kind: ring, endpoints: 4, rate: 80Gbps, latency: 0ns}
network: fair_share
jobs: [{workload: {kind: collective, collective: all_reduce, ranks: 4, size: 4MB}}]
"""


@pytest.mark.parametrize(
    "command",
    [
        "run s.yaml --report s.yaml",
        "run link.yaml --report s.yaml",
        "run s.yaml --report link.yaml",
        "run x/scenario.yaml --report x/scenario.yaml",
        "topology s.yaml --out s.yaml",
        "topology s.yaml --infragraph s.yaml",
        "report x --out x/summary.json",
        "report x --out x/columns.npz",
        "profile s.yaml --out s.yaml",
    ],
)
def test_a_file_that_is_read_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.yaml").write_text(SCENARIO)
    Path("link.yaml").symlink_to("s.yaml")
    cosim.run("s.yaml", out="x")
    before = {file: file.read_bytes() for file in Path().rglob("*") if file.is_file()}
    done = CliRunner().invoke(app, command.split())
    refused = "is read by this command, and would be replaced", "is there already, and is no page"
    assert any(words in str(done.exception) for words in refused)
    assert {file: file.read_bytes() for file in Path().rglob("*") if file.is_file()} == before


def test_what_a_command_wrote_it_replaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.yaml").write_text(SCENARIO)
    for _ in range(2):
        done = CliRunner().invoke(app, ["run", "s.yaml", "--out", "x", "--report", "x/report.html", "-q"])
        assert done.exit_code == 0, done.output
        done = CliRunner().invoke(app, ["report", "x", "--out", "x/report.html"])
        assert done.exit_code == 0, done.output


def test_a_page_goes_down_a_pipe(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(SCENARIO)
    command = [sys.executable, "-m", "cosim", "run", "s.yaml", "-q", "--report", "/dev/stdout"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
    assert b"<!doctype html>" in done.stdout


def test_where_no_temporary_file_can_be_it_is_said(tmp_path: Path) -> None:
    """A container whose root is read-only, without /tmp: a server needs a folder for its socket."""
    served = SCENARIO.replace("fair_share", "{command: [cosim, serve, --network, fair_share]}")
    (tmp_path / "s.yaml").write_text(served)
    nowhere = "import tempfile; tempfile._candidate_tempdir_list = lambda: ['/proc']\n"
    code = f"{nowhere}import sys; sys.argv = ['cosim', 'run', 's.yaml', '-q', '--trust']\n"
    command = [sys.executable, "-c", f"{code}from cosim.cli import main; main()"]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": "/proc"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("error: No usable temporary directory found")
    assert "TMPDIR=" in done.stderr
    assert "Traceback" not in done.stderr
