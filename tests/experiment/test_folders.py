"""A run's folder is of one run, and whole or not there."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

import cosim
from cosim.errors import InputError, SimulationError
from cosim.files.folder import claimed

SCENARIO = """
topology: {kind: ring, endpoints: 4, rate: 80Gbps, latency: 0ns}
network: fair_share
jobs: [{workload: {kind: collective, collective: all_reduce, ranks: 4, size: 4MB}}]
"""
NEVER_ENDS = {"topology.rate": "1bps", "jobs[0].workload.size": "64GB"}
FILES = ["columns.npz", "scenario.yaml", "summary.json", "timeline.json"]


def files(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def test_only_one_run_at_a_time_writes_to_a_folder(tmp_path: Path) -> None:
    with claimed(tmp_path / "out"), pytest.raises(InputError, match="another run writes to this folder"):
        cosim.run(SCENARIO, out=tmp_path / "out")
    cosim.run(SCENARIO, out=tmp_path / "out")
    assert files(tmp_path / "out") == FILES


def test_a_mistake_leaves_the_folder_and_a_run_that_fails_no_older_run(tmp_path: Path) -> None:
    cosim.run(SCENARIO, {"record.messages": True}, out=tmp_path)
    assert files(tmp_path) == sorted([*FILES, "messages.npz"])
    (tmp_path / "mine.txt").touch()
    with pytest.raises(InputError):
        cosim.run(SCENARIO, {"topology.rate": "fast"}, out=tmp_path)
    assert cosim.load_run(tmp_path).digest
    with pytest.raises(SimulationError):
        cosim.run(SCENARIO, NEVER_ENDS, out=tmp_path)
    assert files(tmp_path) == ["mine.txt"]
    with pytest.raises(InputError, match=r"summary\.json is missing"):
        cosim.load_run(tmp_path)


@pytest.mark.parametrize("at", range(4))
def test_a_disk_that_fills_leaves_nothing_of_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    done = cosim.run(SCENARIO)
    done.save(tmp_path)
    opened = Path.open
    count = 0

    def fills(self: Path, mode: str = "r", *rest: Any, **more: Any) -> Any:
        nonlocal count
        if "w" in mode:
            count += 1
            if count == at:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return opened(self, mode, *rest, **more)

    if at:
        monkeypatch.setattr(Path, "open", fills)
        with pytest.raises(InputError, match="No space left on device") as caught:
            done.save(tmp_path)
        assert str(tmp_path) in str(caught.value)
        assert ".writing" not in str(caught.value)
    assert files(tmp_path) == FILES
    assert json.loads((tmp_path / "summary.json").read_text())["digest"] == done.digest


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"scenario": {}, "base": 3, "name": "x"}', "[" * 100_000])
def test_an_unfinished_run_that_was_edited_is_refused(tmp_path: Path, text: str) -> None:
    """Found by tests.fuzz: a key that is gone was a KeyError."""
    (tmp_path / "unfinished.json").write_text(text)
    with pytest.raises(InputError, match="no unfinished run here"):
        cosim.run(resume=tmp_path)
