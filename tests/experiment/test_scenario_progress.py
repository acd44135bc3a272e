"""The progress bar: only where it is wanted, only once a run takes long."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from cosim.experiment.progress import ProgressBar, RunProgress

HERE = RunProgress(3, 4, "5 us simulated, 1,234 messages")


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


def test_a_log_gets_a_line_now_and_then_with_the_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("cosim.experiment.progress.time.monotonic", lambda: now)
    console = Console(file=io.StringIO(), force_terminal=False, width=120, color_system=None)
    assert isinstance(console.file, io.StringIO)
    with ProgressBar(shown=True, patience_s=0, line_s=10, console=console) as bar:
        now += 9
        bar.show(HERE)
        assert console.file.getvalue() == ""  # too early
        now += 3
        bar.show(HERE)
        bar.show(HERE)
    assert console.file.getvalue() == "0:12 75%, 0:04 left: 5 us simulated, 1,234 messages\n"
