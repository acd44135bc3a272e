"""What the page of a search shows: the ranking, why others lose, what could happen, how to run the winner."""

from __future__ import annotations

import math
from typing import Any

from cosim.results.decision import chances, reasons
from cosim.results.quantities import QUANTITIES
from cosim.results.search import SearchRun, TriedPoint


def decision_data(done: SearchRun) -> dict[str, Any]:
    """Plain values; numbers are shown as texts with units, beside what they are sorted by."""
    ranked, first = done.ranked, done.objectives[0]
    sure = chances(ranked, first) if ranked else []
    names = [*dict.fromkeys(name for one in ranked for name in one.seeds)]
    front = {one.labels for one in done.front}
    why = reasons(done)
    lost = [one.labels for one in done.tried if one.error] + [labels for labels, _ in done.refused]
    lost += [labels for labels, _ in done.untried]
    lost += [one.labels for one in done.tried if not one.error and one not in ranked]
    return {
        "name": done.name,
        "question": done.description,
        "axes": [name for name, _ in done.axes],
        "objectives": list(done.objectives),
        "columns": [
            {
                "name": name,
                "text": QUANTITIES[name].text.replace("`", ""),
                "unit": QUANTITIES[name].unit.symbol,
                "per": QUANTITIES[name].unit.per,
                "more_is_better": not QUANTITIES[name].less_is_better,
            }
            for name in names
        ],
        "ranked": [
            {
                "labels": list(one.labels),
                "values": [_value(one, name) for name in names],
                "told": [QUANTITIES[name].unit.show(_value(one, name)) for name in names],
                "low": chance.low,
                "high": chance.high,
                "interval": " to ".join(map(QUANTITIES[first].unit.show, (chance.low, chance.high))),
                "best": chance.best,
                "front": one.labels in front,
                "doubtful": one.doubtful,
                "why": why.get(one.labels, ""),
            }
            for one, chance in zip(ranked, sure, strict=True)
        ],
        "lost": [{"labels": list(labels), "why": why.get(labels, "")} for labels in dict.fromkeys(lost)],
        "what_ifs": _what_ifs(done),
        "winner": done.winner,
        "seeds": max((len(one) for point in ranked for one in point.seeds.values()), default=0),
        "points": done.num_points,
        "verdict": done.verdict,
        "interrupted": done.interrupted,
    }


def _value(one: TriedPoint, name: str) -> float:
    return one.values[name] if name in one.values else math.fsum(one.seeds[name]) / len(one.seeds[name])


def _what_ifs(done: SearchRun) -> list[dict[str, Any]]:
    """A row for each thing that could happen, a cell for each of the first points."""
    first = done.objectives[0]
    base = {one.labels: one.values[first] for one in done.able}
    rows: dict[str, list[dict[str, Any]]] = {}
    for one in done.what_ifs:
        cell: dict[str, Any] = {"labels": list(one.point.labels), "error": one.point.error, "change": None}
        if not one.point.error:
            value = one.point.values[first]
            cell["told"] = QUANTITIES[first].unit.show(value)
            cell["change"] = value / base[one.point.labels] - 1 if base[one.point.labels] else None
            cell["doubtful"] = one.point.doubtful
        rows.setdefault(one.label, []).append(cell)
    return [{"what": what, "cells": cells} for what, cells in rows.items()]
