"""What is kept for later runs: made by one process at a time, refused in a line where it can't be kept."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest

from cosim.errors import InputError
from cosim.files import cache
from cosim.files.cache import cache_folder, making
from cosim.protocol import adapters


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A cache that can't be made, by root neither: a file is in the way."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    return tmp_path / "file"


def test_a_cache_that_cant_be_made_is_said(nowhere: Path) -> None:
    with (
        pytest.raises(InputError, match="can't keep the profile: ") as refused,
        making(cache_folder("profiles") / "lock", "the profile"),
    ):
        pass
    assert str(refused.value.location) == str(nowhere / "cosim" / "profiles")
    assert "XDG_CACHE_HOME" in str(refused.value.hint)


def test_an_adapter_says_so_too(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapters, "missing_packages", lambda _: ())
    with pytest.raises(InputError, match="can't keep the ns3 adapter"):
        adapters.build("ns3")
    assert nowhere.read_bytes() == b""


def _add(path: Path) -> None:
    """Read a number, and write the next one: lost where two do it at once."""
    for _ in range(50):
        with making(path.with_suffix(".lock"), "a number"):
            number = int(path.read_text())
            path.write_text(str(number + 1))


def test_one_process_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "number"
    path.write_text("0")
    processes = [multiprocessing.get_context("fork").Process(target=_add, args=(path,)) for _ in range(4)]
    for one in processes:
        one.start()
    for one in processes:
        one.join(60)
    assert [one.exitcode for one in processes] == [0] * 4
    assert path.read_text() == "200"


def test_who_waits_says_so_and_not_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "PATIENCE_S", 0.0)
    said: list[str] = []
    lock = tmp_path / "lock"
    with (
        making(lock, "a thing"),
        pytest.raises(InputError, match="another process makes a thing and hasn't ended"),
        making(lock, "a thing", said.append),
    ):
        pass
    assert said == ["another process makes a thing; waiting for it"]
    with making(lock, "a thing", said.append):  # the first one's end lets go of it
        assert len(said) == 1
