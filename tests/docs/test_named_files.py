"""What pages name is there: files of the repository, and modules that they have run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.words import READ
from tests.inputs import ROOT

_FILE = re.compile(r"`((?:adapters|cosim|docs|proto|scenarios|tests)/[\w./-]+)`")
_MODULE = re.compile(r"python -m ((?:cosim|tests)[\w.]*)")


@pytest.mark.parametrize("page", READ, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_and_modules_are_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    files = [name for name in _FILE.findall(text) if "NAME" not in name]
    assert [name for name in files if not (ROOT / name).exists()] == []
    modules = [ROOT.joinpath(*name.rstrip(".").split(".")) for name in _MODULE.findall(text)]
    found = [one.with_suffix(".py").is_file() or (one / "__main__.py").is_file() for one in modules]
    assert all(found), [str(one) for one, there in zip(modules, found, strict=True) if not there]
