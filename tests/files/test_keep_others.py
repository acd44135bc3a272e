"""A file that cosim didn't write is not replaced by one of a default name."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from cosim.cli import app
from cosim.files.whole import keep_others
from tests.inputs import ROOT


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("job.yaml", ["profile", "train.py"]),
        ("gpu.yaml", ["fit", str(ROOT / "scenarios/one-h100.yaml"), "--measured", "1s"]),
        ("report.html", ["report", "runs/x"]),
        ("photo.png", ["run", str(ROOT / "scenarios/quickstart.yaml"), "--figure", "photo.png"]),
        ("photo.pdf", ["validate", str(ROOT / "pyproject.toml"), "--figure", "photo.pdf"]),
        ("mine.yaml", ["calibrate", "-o", "mine.yaml", "--device", "cpu"]),
    ],
)
def test_a_users_file_stays(
    name: str, command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("")
    (tmp_path / name).write_text("the user's own\n")
    done = CliRunner().invoke(app, command)
    assert "is there already" in str(done.exception)
    assert (tmp_path / name).read_text() == "the user's own\n"


def test_what_cosim_wrote_is_replaced(tmp_path: Path) -> None:
    for content in ("", "# cosim's\nrest\n"):
        (tmp_path / "file").write_text(content)
        keep_others(tmp_path / "file", "# cosim's", "table")
    keep_others(tmp_path / "none", "# cosim's", "table")
    keep_others(Path("/dev/null"), "# cosim's", "table")
