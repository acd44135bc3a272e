"""The progress bar: only where it is wanted, only once a run takes long."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from cosim.experiment.progress import Progress, ProgressBar

HERE = Progress(3, 4, "5 us simulated, 1,234 messages")


def test_a_short_run_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressBar(shown=True) as bar:
        bar.show(HERE)
    assert capsys.readouterr() == ("", "")


def test_a_hidden_bar_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressBar(shown=False, patience_s=0) as bar:
        bar.show(HERE)
    assert capsys.readouterr() == ("", "")


def test_a_long_run_shows_how_far_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=120, color_system=None)
    with ProgressBar(shown=True, patience_s=0, console=console) as bar:
        bar.show(HERE)
    assert capsys.readouterr() == ("", "")
    shown = console.file
    assert isinstance(shown, io.StringIO)
    assert "75%" in shown.getvalue()
    assert "5 us simulated, 1,234 messages" in shown.getvalue()
