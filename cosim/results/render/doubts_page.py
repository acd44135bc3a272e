"""The block ``doubtful:``, which stands above an answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cosim.doubts import Doubt
from cosim.results.render.page import Lines, Section

MARK = "?"
"""Beside an answer in a table that is doubtful."""
_WIDTH = 110
_MAX_POINTS = 12


def doubts_section(doubts: Sequence[Doubt]) -> list[Section]:
    """Each with what would do; no section where there is none."""
    return _block(f"  {one.what}: {one.why}; instead: {one.instead}" for one in doubts)


def points_section(doubtful: Iterable[tuple[str, str]]) -> list[Section]:
    """Points of a sweep or a search by (name, what is doubtful), each doubt once with all its points."""
    points: dict[str, list[str]] = {}
    for name, why in doubtful:
        if why:
            points.setdefault(why, []).append(name)
    return _block(f"  {MARK} {_named(names)}: {why}" for why, names in points.items())


def _block(lines: Iterable[str]) -> list[Section]:
    shown = [*lines]
    return [Section([Lines(["doubtful:"], bold=True), Lines(shown, width=_WIDTH)])] if shown else []


def _named(names: Iterable[str]) -> str:
    each = [*dict.fromkeys(names)]
    more = [f"{len(each) - _MAX_POINTS} more"] if len(each) > _MAX_POINTS else []
    return ", ".join([*each[:_MAX_POINTS], *more])
