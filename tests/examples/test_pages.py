"""Every command and every Python block of README and ``docs/`` runs, and prints what the page says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from cosim.cli import app
from tests.examples.pages import NEEDS, PAGES, Block, blocks, commands, matches, prepare, run_block
from tests.inputs import ROOT

PLAIN = [page for page in PAGES if any(block.runs and not block.special for block in blocks(page))]
SPECIAL = [
    pytest.param(block, id=block.place, marks=[pytest.mark.slow] * bool(block.takes))
    for page in PAGES
    for block in blocks(page)
    if block.runs and block.special
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder, so that what examples write does not stay."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path


@pytest.mark.parametrize("page", PLAIN, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_is_right(page: Path, folder: Path) -> None:
    prepare(page, folder)
    names: dict[str, Any] = {"__name__": "__main__"}
    wrong = [
        one for block in blocks(page) if block.runs and not block.special for one in run_block(block, names)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("block", SPECIAL)
def test_a_block_with_needs_is_right(block: Block, folder: Path) -> None:
    if missing := block.missing():
        pytest.skip(missing)
    prepare(block.page, folder)
    wrong = list(run_block(block, {"__name__": "__main__"}))
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_names_is_there(page: Path) -> None:
    """Options that are named in a sentence, or in a block that isn't run here; tests/docs has the files."""
    text = page.read_text(encoding="utf-8")
    said = re.findall(r"`(cosim [^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S))
    said += [
        command
        for block in blocks(page)
        if block.special and block.language != "python"
        for command, _ in commands(block)
        if command.startswith("cosim ")
    ]
    wrong = [one for command in said for one in mistakes(command)]
    assert not wrong, "\n".join(wrong)


def mistakes(command: str) -> list[str]:
    """What is wrong with a command line that is not run: an unknown command or option."""
    arguments = shlex.split(command, comments=True)[1:]
    here: Any = typer.main.get_command(app)
    while arguments and not arguments[0].startswith("-") and hasattr(here, "commands"):
        if arguments[0] not in here.commands:
            return [f"{command}: there is no command {arguments[0]!r}"]
        here = here.commands[arguments.pop(0)]
    known = {option for one in here.params for option in (*one.opts, *one.secondary_opts)} | {"--help"}
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return [
        f"{command}: no option {one!r}"
        for one in own
        if one.startswith("-") and one.split("=")[0] not in known
    ]


def test_needs_are_known_and_outputs_are_compared() -> None:
    for page in PAGES:
        for block in blocks(page):
            assert set(block.needs) <= NEEDS.keys(), f"{block.place}: {block.needs}"
            assert block.language != "text" or not block.text.startswith("$ "), (
                f"{block.place}: make it console"
            )


def test_readme_has_the_two_commands() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for name in ("run", "test"):
        assert re.search(rf"^<!-- {name} -->\n```sh\n.+\n```$", text, re.MULTILINE)


def test_readme_is_short() -> None:
    assert (ROOT / "README.md").stat().st_size < 8000


def test_output_is_compared_up_to_wall_time_and_ellipsis() -> None:
    assert matches("a\n...\nd\n", "a\nb\nc\nd\n")
    assert matches("1 ms simulated in 0.1 s\n", "1 ms simulated in 12.34 s\n")
    assert not matches("a\nb\n", "a\nc\n")
    assert not matches("a\n", "a\nb\n")


def test_a_wrong_command_is_found() -> None:
    assert mistakes("cosim run scenarios/quickstart.yaml --set a=1") == []
    assert mistakes("cosim rum x.yaml") == ["cosim rum x.yaml: there is no command 'rum'"]
    assert mistakes("cosim run x.yaml --sett a=1") == ["cosim run x.yaml --sett a=1: no option '--sett'"]
