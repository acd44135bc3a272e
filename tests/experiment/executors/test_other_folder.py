"""Processes that a command starts are of the cosim that was asked, wherever that was."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cosim.same_python import same_python
from tests.cli.processes import PATIENCE_S
from tests.inputs import ROOT

SWEEP = """
scenario: {topology: {kind: ring, endpoints: 4, rate: 100Gbps, latency: 500ns}, network: fair_share,
           jobs: [{workload: {kind: collective, collective: all_reduce, size: 1MB, ranks: 4}}]}
axes: {rate: {"100": {topology.rate: 100Gbps}, "200": {topology.rate: 200Gbps}}}
measures: [iteration]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Beside something else of that name, as a checkout of another version is."""
    (tmp_path / "cosim").mkdir()
    (tmp_path / "cosim" / "__init__.py").write_text("raise SystemExit('another cosim')\n")
    return tmp_path


def cosim(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """As the installed command does, which does not look into the folder where it is typed."""
    whole = [sys.executable, "-P", "-m", "cosim", *arguments]
    cache = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
    return subprocess.run(
        whole, cwd=folder, env=cache, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


def test_a_sweeps_workers(folder: Path) -> None:
    (folder / "sweep.yaml").write_text(SWEEP)
    done = cosim(folder, "run", "sweep.yaml", "--workers", "2")
    assert done.returncode == 0, done.stderr
    assert "sweep: 2 runs" in done.stdout


@pytest.mark.slow
def test_a_profiles_ranks(folder: Path) -> None:
    pytest.importorskip("torch")
    (folder / "train.py").write_text((ROOT / "tests/profiler/scripts/ddp_mlp.py").read_text())
    done = cosim(folder, "profile", "train.py", "--world-size", "1", "-o", "job.yaml")
    assert done.returncode == 0, done.stderr
    assert (folder / "job.yaml").exists()


def test_folders_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path / "first"), "", *sys.path])
    command = same_python("import json; print(json.dumps(sys.path + sys.argv[1:]))", "an argument")
    told = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S, check=True
    ).stdout
    assert told.startswith(f'["{tmp_path}/first", "{tmp_path}", ')
    assert told.endswith(', "an argument"]\n')


@pytest.mark.slow
def test_a_script_finds_what_torchrun_would_let_it_find(folder: Path) -> None:
    """Not what lies where the command is typed, but what its own environment says."""
    pytest.importorskip("torch")
    for place in (folder, folder / "mine", folder / "scripts"):
        place.mkdir(exist_ok=True)
    for place in (folder, folder / "mine"):
        (place / "layers.py").write_text("WIDTH = 16\n")
    script = "import layers\n" + (ROOT / "tests/profiler/scripts/ddp_mlp.py").read_text()
    (folder / "scripts" / "train.py").write_text(script)
    job = "{kind: script, script: scripts/train.py, world_size: 1, verify: false%s}"
    text = """topology: {kind: switch, endpoints: 1, rate: 100Gbps, latency: 1us}
network: fair_share
jobs: [{workload: %s}]
"""
    (folder / "without.yaml").write_text(text % job % "")
    (folder / "with.yaml").write_text(text % job % f", environment: {{PYTHONPATH: '{folder}/mine'}}")
    assert "No module named 'layers'" in cosim(folder, "run", "without.yaml").stderr
    done = cosim(folder, "run", "with.yaml")
    assert done.returncode == 0, done.stderr
