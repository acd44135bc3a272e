"""Every scenario stands in the gallery, with a picture of the figures that its answer gives."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from tests.inputs import ROOT

SCENARIOS = sorted((ROOT / "scenarios").glob("*.yaml"))


def load(name: str) -> ModuleType:
    """A program of ``docs/``, which is no package."""
    spec = importlib.util.spec_from_file_location(Path(name).stem, ROOT / "docs" / name)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pictures_show_the_figures_of_the_answers() -> None:
    pytest.importorskip("PIL", reason="no Pillow: pip install '.[plot]'")
    pictures = load("pictures.py")
    wrong = [scenario.stem for scenario in SCENARIOS if not pictures.is_current(scenario)]
    assert not wrong, f"python docs/pictures.py {' '.join(wrong)}"
    for photo in pictures.REPORTS:
        assert pictures.is_report_current(photo), f"{photo.path.name}: python docs/pictures.py reports"


def test_every_scenario_stands_under_a_heading() -> None:
    pytest.importorskip("sphinx", reason="no sphinx: pip install '.[docs]'")
    gallery = load("extensions/gallery_pages.py")
    shown = [path for paths in gallery.headings().values() for path in paths]
    assert sorted(shown) == SCENARIOS
    assert gallery.LAST not in gallery.headings(), (
        "a scenario needs a heading in docs/extensions/gallery_pages.py"
    )


def test_a_scenario_asks_something() -> None:
    pytest.importorskip("sphinx", reason="no sphinx: pip install '.[docs]'")
    gallery = load("extensions/gallery_pages.py")
    for scenario in SCENARIOS:
        asked, said = gallery.short_question(scenario), gallery.question(scenario).split()
        assert asked, scenario
        assert asked.split()[0] in said, f"{scenario}: {asked.split()[0]} is a part of a word"
