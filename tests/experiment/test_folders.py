"""A run's folder: what is there stays until something better is whole, and files of others stay for good."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import cosim
from cosim.cli import app
from cosim.errors import InputError, SimulationError
from cosim.files import lock
from cosim.files.folder import MANIFEST, SWAP, claimed, files_of, settle, written_whole

SCENARIO = """
topology: {kind: ring, endpoints: 4, rate: 80Gbps, latency: 0ns}
network: fair_share
jobs: [{workload: {kind: collective, collective: all_reduce, ranks: 4, size: 4MB}}]
"""
SWEEP = """
scenario:
  topology: {kind: ring, endpoints: 4, rate: 80Gbps, latency: 0ns}
  network: congestion_unaware
  jobs: [{workload: {kind: collective, collective: all_reduce, ranks: 4, size: 4MB}}]
axes: {rate: {topology.rate: [80Gbps, 160Gbps]}}
"""
NEVER_ENDS = {"topology.rate": "1bps", "jobs[0].workload.size": "64GB"}
FILES = ["columns.npz", "scenario.yaml", "summary.json", "timeline.json"]


def files(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir() if not file.name.startswith("."))


def test_only_one_run_at_a_time_writes_to_a_folder(tmp_path: Path) -> None:
    with claimed(tmp_path / "out"), pytest.raises(InputError, match="another run writes to this folder"):
        cosim.run(SCENARIO, out=tmp_path / "out")
    cosim.run(SCENARIO, out=tmp_path / "out")
    assert files(tmp_path / "out") == FILES
    assert files_of(tmp_path / "out") == set(FILES)


def test_neither_a_mistake_nor_a_run_that_fails_costs_an_older_run(tmp_path: Path) -> None:
    first = cosim.run(SCENARIO, {"record.messages": True}, out=tmp_path)
    (tmp_path / "mine.txt").touch()
    with pytest.raises(InputError):
        cosim.run(SCENARIO, {"topology.rate": "fast"}, out=tmp_path)
    with pytest.raises(SimulationError):
        cosim.run(SCENARIO, NEVER_ENDS, out=tmp_path)
    assert cosim.load_run(tmp_path).digest == first.digest
    assert files(tmp_path) == sorted([*FILES, "messages.npz", "mine.txt"])
    cosim.run(SCENARIO, out=tmp_path)  # keeps no messages: those of the older run would not be its own
    assert files(tmp_path) == sorted([*FILES, "mine.txt"])


@pytest.mark.parametrize("at", range(4))
def test_a_disk_that_fills_leaves_the_older_run(
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


def test_the_scenario_of_a_run_is_never_replaced_by_its_results(tmp_path: Path) -> None:
    """``cosim run scenario.yaml --out .`` once deleted scenario.yaml."""
    mine = tmp_path / "scenario.yaml"
    mine.write_text(SCENARIO)
    for overwrite in (False, True):
        with pytest.raises(InputError, match="is read by this run") as caught:
            cosim.run(mine, NEVER_ENDS, out=tmp_path, overwrite=overwrite)
        assert str(mine) in str(caught.value)
    assert files(tmp_path) == ["scenario.yaml"]
    assert mine.read_text() == SCENARIO


def test_a_run_again_from_its_own_folder_leaves_it(tmp_path: Path) -> None:
    first = cosim.run(SCENARIO, out=tmp_path)
    with pytest.raises(InputError, match="is read by this run"):
        cosim.run(tmp_path / "scenario.yaml", NEVER_ENDS, out=tmp_path)
    assert cosim.load_run(tmp_path).digest == first.digest
    assert cosim.run(tmp_path / "scenario.yaml").digest == first.digest


@pytest.mark.parametrize("name", ["summary.json", "columns.npz", "messages.parquet", "injections.log"])
def test_files_of_others_are_replaced_only_where_somebody_says_so(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(InputError, match="which cosim did not write") as caught:
        cosim.run(SCENARIO, out=tmp_path)
    assert name in str(caught.value)
    assert "--overwrite" in str(caught.value)
    assert files(tmp_path) == [name]
    assert (tmp_path / name).read_text() == "mine"
    done = cosim.run(SCENARIO, out=tmp_path, overwrite=True)
    assert cosim.load_run(tmp_path).digest == done.digest


def test_a_link_that_leads_nowhere_is_somebodys_too(tmp_path: Path) -> None:
    (tmp_path / "summary.json").symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(InputError, match="which cosim did not write"):
        cosim.run(SCENARIO, out=tmp_path)
    assert not (tmp_path / "elsewhere.json").exists()


def test_a_sweep_keeps_files_of_others_and_its_own_until_new_ones_are_whole(tmp_path: Path) -> None:
    path = tmp_path / "sweep.yaml"
    path.write_text(SWEEP)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "table.txt").write_text("mine")
    with pytest.raises(InputError, match="which cosim did not write"):
        cosim.sweep(path, out=tmp_path / "out")
    cosim.sweep(path, out=tmp_path / "out", overwrite=True)
    written = (tmp_path / "out" / "trials.csv").read_text()
    with pytest.raises(InputError):
        cosim.sweep(path, set={"axes.rate": {"topology.rate": ["fast"]}}, out=tmp_path / "out")
    assert (tmp_path / "out" / "trials.csv").read_text() == written


def test_the_command_says_what_it_would_replace(tmp_path: Path) -> None:
    scenario = tmp_path / "ring.yaml"
    scenario.write_text(SCENARIO)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "timeline.json").write_text("mine")
    cli = CliRunner()
    refused = cli.invoke(app, ["run", str(scenario), "--out", str(tmp_path / "out")])
    assert isinstance(refused.exception, InputError)
    assert "timeline.json" in str(refused.exception)
    nameless = cli.invoke(app, ["run", str(scenario), "--out", ""])
    assert nameless.exit_code == 2
    assert "no name" in nameless.output
    done = cli.invoke(app, ["run", str(scenario), "-q", "--out", str(tmp_path / "out"), "--overwrite"])
    assert done.exit_code == 0


NAMES = ("a", "b", "c")
_WRITES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "open"}


def write(target: Path, number: int, which: str) -> None:
    with claimed(target, NAMES), written_whole(target, NAMES) as part:
        for name in which:
            (part / name).write_text(f"{name}{number}")


def read(target: Path) -> dict[str, str]:
    settle(target)
    return {name: (target / name).read_text() for name in NAMES if (target / name).exists()}


def dies_at(step: int, target: Path) -> bool:
    """Whether a process that writes dies at its operation of this number on files; without a trace."""
    child = os.fork()
    if not child:
        count = 0

        def hook(event: str, _: tuple[Any, ...]) -> None:
            nonlocal count
            count += event in _WRITES
            if event in _WRITES and count == step:
                os.kill(os.getpid(), signal.SIGKILL)

        try:
            sys.addaudithook(hook)
            write(target, 2, "ac")
            os._exit(0)
        finally:
            os._exit(1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGKILL)
    return status != 0


def test_whoever_is_killed_anywhere_leaves_the_older_results_or_the_new_ones(tmp_path: Path) -> None:
    older, newer = {"a": "a1", "b": "b1"}, {"a": "a2", "c": "c2"}
    seen = []
    for step in range(1, 200):
        target = tmp_path / str(step)
        write(target, 1, "ab")
        died = dies_at(step, target)
        seen.append(read(target))
        assert seen[-1] in (older, newer), step
        write(target, 3, "b")
        assert read(target) == {"b": "b3"}
        assert {file.name for file in target.iterdir()} == {"b", MANIFEST}
        if not died:
            break
    assert seen[0] == older
    assert seen[-1] == newer
    assert len(seen) > 12  # steps, of which some come after the one that decides


def test_a_manifest_that_was_edited_gives_nothing_away(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "a").write_text("mine")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / MANIFEST).write_text('{"files": ["../mine/a"]}')
    (tmp_path / "out" / SWAP).write_text('{"part": "../mine", "files": ["a"], "gone": ["../mine/a"]}')
    write(tmp_path / "out", 1, "b")
    assert read(tmp_path / "out") == {"b": "b1"}
    assert (tmp_path / "mine" / "a").read_text() == "mine"


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"scenario": {}, "base": 3, "name": "x"}', "[" * 100_000])
def test_an_unfinished_run_that_was_edited_is_refused(tmp_path: Path, text: str) -> None:
    """Found by tests.lab.fuzz: a key that is gone was a KeyError."""
    (tmp_path / "unfinished.json").write_text(text)
    with pytest.raises(InputError, match="no unfinished run here"):
        cosim.run(resume=tmp_path)


def test_what_is_no_folder_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "nowhere").symlink_to(tmp_path / "elsewhere")
    for name, why in {
        "file": "is a file",
        "file/below": "Not a directory",
        "loop": "a link that leads nowhere",
        "nowhere": "a link that leads nowhere",
        "x" * 300: "File name too long",
    }.items():
        with pytest.raises(InputError, match=why):
            cosim.run(SCENARIO, out=tmp_path / name)
    assert not (tmp_path / "elsewhere").exists()


def test_a_link_to_a_folder_stays_one(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    cosim.run(SCENARIO, out=tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert files(tmp_path / "real") == FILES


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_folder_where_a_result_would_be_stays(tmp_path: Path, overwrite: bool) -> None:
    cosim.run(SCENARIO, out=tmp_path)
    (tmp_path / "summary.json").unlink()
    (tmp_path / "summary.json").mkdir()
    (tmp_path / "summary.json" / "mine").touch()
    with pytest.raises(InputError, match="in the way of the results"):
        cosim.run(SCENARIO, out=tmp_path, overwrite=overwrite)
    assert (tmp_path / "summary.json" / "mine").exists()
    (tmp_path / "summary.json").rename(tmp_path / "other")
    cosim.run(SCENARIO, out=tmp_path)
    assert files(tmp_path) == sorted([*FILES, "other"])


def test_where_nothing_can_be_renamed_over_the_older_run_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, replace = cosim.run(SCENARIO, out=tmp_path), os.replace

    def not_over(source: str | Path, target: str | Path) -> None:
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", not_over)
        for folder in (tmp_path, tmp_path / "new"):
            with pytest.raises(InputError, match="can't write the run: File exists"):
                cosim.run(SCENARIO, {"jobs[0].iterations": 2}, out=folder)
    assert cosim.load_run(tmp_path).digest == first.digest
    assert files(tmp_path) == sorted([*FILES, "new"])
    assert not files(tmp_path / "new")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_another_users_folder_is_refused_in_a_line() -> None:
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        out = Path(place) / "out"
        cosim.run(SCENARIO, out=out)
        first = cosim.load_run(out)  # imports what reading needs: another user may not read Python's files
        os.seteuid(65534)
        try:
            with pytest.raises(InputError, match="Permission denied"):
                cosim.run(SCENARIO, {"jobs[0].iterations": 2}, out=out)
            assert cosim.load_run(out).digest == first.digest
        finally:
            os.seteuid(0)
        assert cosim.load_run(out).digest == first.digest
        assert files(out) == FILES


def test_a_folder_that_another_machine_shares_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Linux keeps a folder's own lock to the machine: without it, the byte of a file still holds."""
    monkeypatch.setattr(lock, "try_lock", lambda _: True)
    cosim.run(SCENARIO, out=tmp_path)
    command = [sys.executable, "-c", _OTHER, str(tmp_path)]
    with claimed(tmp_path):
        other = subprocess.run(command, check=False, capture_output=True, text=True)
        assert "another run writes to this folder" in other.stdout, other.stderr
    assert not (tmp_path / lock.LOCK_FILE).exists()
    (tmp_path / lock.LOCK_FILE).touch()  # of one that died
    assert "None" in subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert not (tmp_path / lock.LOCK_FILE).exists()
    assert files(tmp_path) == FILES


_OTHER = """
import sys
from cosim.errors import InputError
from cosim.files import folder, lock
lock.try_lock = lambda handle: True
try:
    with folder.claimed(sys.argv[1]):
        print(None)
except InputError as error:
    print(error)
"""
