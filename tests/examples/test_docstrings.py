"""Examples in docstrings of ``cosim`` run, and print what they say."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

from tests.inputs import ROOT

ALONE = ROOT / "cosim" / "profiler" / "context.py"
"""Its example has to be the first to import torch: ``tests/api`` runs it in a process of its own."""
FILES = [
    path
    for path in sorted((ROOT / "cosim").rglob("*.py"))
    if path != ALONE and ">>> " in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("file", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_examples_print_what_they_say(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")
    parts = file.relative_to(ROOT).with_suffix("").parts
    module = importlib.import_module(".".join(parts).removesuffix(".__init__"))
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    result = doctest.testmod(module, optionflags=flags)
    assert result.attempted
    assert result.failed == 0  # what differs is in the captured output
