"""What a network's file system does otherwise than a machine's own: no locks, stale handles, odd names."""

from __future__ import annotations

import errno
import fcntl
from pathlib import Path
from typing import Any

import pytest

import cosim
from cosim.errors import InputError
from cosim.experiment.store.place import _Folder
from cosim.experiment.store.runs import open_store
from cosim.results.stored_run import StoredRun

SCENARIO = """
topology: {kind: ring, endpoints: 4, rate: 80Gbps, latency: 0ns}
network: fair_share
jobs: [{workload: {kind: collective, collective: all_reduce, ranks: 4, size: 4MB}}]
"""
TWICE = {"jobs[0].iterations": 2}


def refuse(*_: object) -> None:
    """As NFS that is mounted with ``nolock``, or whose ``lockd`` is gone."""
    raise OSError(errno.ENOLCK, "No locks available")


def test_without_locks_runs_are_written_and_found_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fcntl, "flock", refuse)
    monkeypatch.setattr(fcntl, "lockf", refuse)
    cosim.run(SCENARIO, out=tmp_path / "out")
    first = cosim.run(SCENARIO, TWICE, out=tmp_path / "out", store=tmp_path / "store")
    assert cosim.load_run(tmp_path / "out").digest == first.digest
    again = cosim.run(SCENARIO, TWICE, store=tmp_path / "store")
    assert isinstance(again, StoredRun)
    assert again.digest == first.digest


def test_a_stale_handle_in_a_store_costs_a_run_and_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each file's first reading meets a handle of one that another machine has replaced."""
    first = cosim.run(SCENARIO, store=tmp_path)
    met: set[str] = set()
    read = _Folder.read

    def stale_at_first(place: _Folder, name: str) -> bytes:
        if name in met:
            return read(place, name)
        met.add(name)
        raise OSError(errno.ESTALE, "Stale file handle", name)

    monkeypatch.setattr(_Folder, "read", stale_at_first)
    for _ in range(5):  # an entry, and four files
        assert cosim.run(SCENARIO, store=tmp_path).digest == first.digest
    assert met
    assert isinstance(cosim.run(SCENARIO, store=tmp_path), StoredRun)
    assert open_store(tmp_path).entries()[1] == {}


@pytest.mark.parametrize("name", ["summary.json", "columns.npz"])
def test_a_stale_handle_in_a_folder_of_results_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    cosim.run(SCENARIO, out=tmp_path)

    def opened(path: Path, *given: Any, **named: Any) -> Any:
        if path.name == name:
            raise OSError(errno.ESTALE, "Stale file handle", str(path))
        return inner(path, *given, **named)

    inner = Path.open
    monkeypatch.setattr(Path, "open", opened)
    with pytest.raises(InputError, match="Stale file handle"):
        cosim.load_run(tmp_path).columns  # noqa: B018 - reads them
    monkeypatch.undo()
    assert len(cosim.load_run(tmp_path).columns["link_bytes"]) == 8


def test_what_nfs_keeps_of_open_files_is_in_nobodys_way(tmp_path: Path) -> None:
    """A file that is removed while somebody has it open stays as ``.nfs...`` until it is closed."""
    out, store = tmp_path / "out", tmp_path / "store"
    cosim.run(SCENARIO, out=out, store=store)
    for folder in [out, *(one for one in store.rglob("*") if one.is_dir())]:
        (folder / ".nfs000000000001").touch()
    done = cosim.run(SCENARIO, TWICE, out=out, store=store)
    assert cosim.load_run(out).digest == done.digest
    entries, broken = open_store(store).entries()
    assert (len(entries), broken) == (2, {})
    assert (out / ".nfs000000000001").exists()
