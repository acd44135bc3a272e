"""README's examples run, and print what README says they print.

A ``python`` block is run; a ``text`` block right after it is what it prints. In a ``console`` block, lines
after ``$ cosim ...`` are what it prints; a line ``...`` stands for any lines. Wall-clock times may differ.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.examples.answers import without_wall_time
from tests.inputs import ROOT

README = ROOT / "README.md"


@dataclass(frozen=True)
class Block:
    line: int
    language: str
    text: str


def blocks() -> list[Block]:
    text = README.read_text(encoding="utf-8")
    return [
        Block(text[: match.start()].count("\n") + 1, match[1], match[2])
        for match in re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    ]


def python_examples() -> list[tuple[Block, str | None]]:
    every = blocks()
    following = [*every[1:], Block(0, "", "")]
    return [
        (block, after.text if after.language == "text" else None)
        for block, after in zip(every, following, strict=True)
        if block.language == "python"
    ]


def console_examples() -> list[tuple[int, str, str]]:
    found = []
    for block in blocks():
        if block.language == "console":
            for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
                command, _, output = part.partition("\n")
                found.append((block.line, command, output))
    return found


def matches(expected: str, printed: str) -> bool:
    """Equal, where a line ``...`` stands for any lines."""
    pattern = "".join(
        r"(?:.*\n)*?" if line.strip() == "..." else re.escape(line.rstrip()) + r"\s*?\n"
        for line in without_wall_time(expected).splitlines()
    )
    return re.fullmatch(pattern + r"\s*", without_wall_time(printed)) is not None


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder that has the scenarios, so that what examples write does not stay."""
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_python_blocks_print_what_readme_says() -> None:
    for block, expected in python_examples():
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block.text, f"README.md:{block.line}", "exec"), {"__name__": "__main__"})
        assert expected is None or matches(expected, printed.getvalue()), (
            f"README.md:{block.line} printed\n{printed.getvalue()}"
        )


@pytest.mark.usefixtures("folder")
def test_console_blocks_print_what_readme_says() -> None:
    for line, command, expected in console_examples():
        name, *arguments = shlex.split(command, comments=True)
        assert name == "cosim", f"README.md:{line}: {command}: only cosim is run"
        done = subprocess.run(
            [sys.executable, "-c", "from cosim.cli import main; main()", *arguments],
            capture_output=True,
            text=True,
            check=False,
        )
        printed = done.stdout + done.stderr
        assert matches(expected, printed), f"README.md:{line}: {command} printed\n{printed}"


def test_readme_has_the_two_commands() -> None:
    text = README.read_text(encoding="utf-8")
    for name in ("run", "test"):
        assert re.search(rf"^<!-- {name} -->\n```sh\n.+\n```$", text, re.MULTILINE)


def test_output_is_compared_up_to_wall_time_and_ellipsis() -> None:
    assert matches("a\n...\nd\n", "a\nb\nc\nd\n")
    assert matches("1 ms simulated in 0.1 s\n", "1 ms simulated in 12.34 s\n")
    assert not matches("a\nb\n", "a\nc\n")
    assert not matches("a\n", "a\nb\n")
