"""What the command does with files that never end, and with output that can't be written."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from cosim.cli.say import say
from cosim.errors import ScenarioError
from cosim.files import text
from cosim.files.text import read_text
from cosim.results.render.page import Lines, PageTable, Section
from cosim.results.render.text import text as laid_out
from tests.cli.processes import PATIENCE_S


def command(*arguments: str, redirect: str) -> subprocess.CompletedProcess[str]:
    line = f'"$0" -c "from cosim.cli import main; main()" {" ".join(arguments)} {redirect}'
    return subprocess.run(
        ["bash", "-c", line, sys.executable], capture_output=True, text=True, timeout=PATIENCE_S
    )


@pytest.mark.parametrize("redirect", [">&-", ">/dev/full"])
def test_output_that_cannot_be_written_is_said(redirect: str) -> None:
    done = command("list", redirect=redirect)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("error: ")


def test_a_reader_that_goes_away_is_no_error() -> None:
    assert command("schema", redirect="| head -c 1").stderr == ""


def test_a_pipe_that_nobody_writes_to_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "PATIENCE_S", 0.05)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ScenarioError, match="a pipe that nobody writes to"):
        read_text(tmp_path / "pipe", ScenarioError)
    with pytest.raises(ScenarioError, match="a pipe or a device"):
        read_text(Path("/dev/zero"), ScenarioError)


def test_a_pipe_is_read_to_its_end(tmp_path: Path) -> None:
    pipe, content = tmp_path / "pipe", "name: x\r\n" * 50_000
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(content.encode()))
    writer.start()
    assert read_text(pipe, ScenarioError) == content.replace("\r", "")
    writer.join()


def test_what_a_terminal_takes_for_a_command_is_shown_as_an_escape(
    capsys: pytest.CaptureFixture[str],
) -> None:
    say("a\x1b[2Jb\x9b1m\nc")
    assert capsys.readouterr().err == "a\\x1b[2Jb\\x9b1m\nc\n"
    page = [Section([PageTable([["a\x1b[2J"], ["\ud800"]], headless=True), Lines(["\x07"])])]
    assert laid_out(page) == "a\\x1b[2J\n\\ud800\n\\x07\n"


@pytest.mark.parametrize("width", [20, 40, 60])
def test_no_line_is_longer_than_the_terminal(width: int) -> None:
    rows = [[f"head {n}" for n in range(9)], *([f"{n}:{k}" * 3 for n in range(9)] for k in range(3))]
    page = laid_out([Section([PageTable(rows), Lines(["x" * 100])])], width=width)
    assert max(map(len, page.splitlines())) <= width
    for row in rows[1:]:
        assert all(cell in page for cell in row)
