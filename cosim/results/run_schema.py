"""The schema of what is written of a run, with types, shapes and units: ``cosim schema run``.

Each column is declared once, as ``TYPE[SHAPE]: text``, where it is made: :data:`.store.COLUMNS` and
:data:`.series.SERIES_COLUMNS`. This reads the declarations, for the reference's page, for programs and for
:func:`mistakes`, which holds a run to them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

import numpy as np
from pydantic import TypeAdapter

from cosim.engine.records import MessageRecords
from cosim.results.quantities import QUANTITIES
from cosim.results.series import SERIES_COLUMNS
from cosim.results.store import COLUMNS, FOLDED_COLUMNS, FORMAT
from cosim.results.summary import Summary
from cosim.results.sweep import column_of
from cosim.results.table import Array
from cosim.results.tables import TEXTS

When = Literal["always", "record", "folded"]

_UNITS = {"ps": "ps", "bytes": "bytes", "bps": "bit/s", "s": "s", "usd": "USD", "w": "W", "j": "J"}
_DECLARED = re.compile(r"(?P<type>\w+)(?P<shape> scalar|\[[^\]]+\])?(?:[:,] (?P<text>.*))?")
_EXTENT = re.compile(r"(\w+)(?: \+ (\d+))?")


@dataclass(frozen=True)
class Column:
    """A column of ``columns.npz`` or of the messages.

    Attributes
    ----------
    type
        ``int32``, ``float64`` ..., or ``str``: text of fixed width.
    shape
        An extent each, empty for one number. Extents of one name are equal in one run: ``O``, ``J + 1``.
        ``*`` is a length of the column's own.
    unit
        ``ps``, ``bytes``, ``bit/s``; empty: a number, a place or a text.
    when
        ``always``; ``record``: where the scenario asks for queues or rates; ``folded``: where a job is.
    """

    name: str
    type: str
    shape: tuple[str, ...]
    unit: str
    text: str
    when: When = "always"


def unit_of(name: str) -> str:
    """The unit that a column's or key's name ends with: ``ps`` of ``start_ps``; empty where it has none."""
    stem, _, last = name.rpartition("_")
    return _UNITS.get(last, "") if stem and "_per_" not in name else ""


def columns() -> list[Column]:
    """The columns of ``columns.npz``, in the order in which they are declared."""
    groups: dict[When, dict[str, str]] = {
        "always": COLUMNS,
        "folded": FOLDED_COLUMNS,
        "record": SERIES_COLUMNS,
    }
    return [_column(name, text, when) for when, group in groups.items() for name, text in group.items()]


def message_columns() -> list[Column]:
    """The columns of ``messages.npz`` and ``messages.parquet``."""
    texts = TEXTS["messages"] | {"job": "its number", "op": TEXTS["messages"]["operation"]}
    return [
        Column(
            one.name, "int32" if one.type == "I32" else "int64", ("M",), unit_of(one.name), texts[one.name]
        )
        for one in fields(MessageRecords)
    ]


def run_schema() -> dict[str, Any]:
    """All of it as plain values: columns, messages, a JSON schema of ``summary.json``, measures of sweeps."""
    summary = TypeAdapter(Summary).json_schema(mode="serialization")
    for part in (summary, *summary["$defs"].values()):
        for name, one in part["properties"].items():
            if unit := unit_of(name):
                one["unit"] = unit
    return {
        "version": FORMAT,
        "columns.npz": [asdict(one) for one in columns()],
        "messages": [asdict(one) for one in message_columns()],
        "summary.json": {"$schema": "https://json-schema.org/draft/2020-12/schema", **summary},
        "trials.csv": [
            {"name": column_of(name), "unit": unit_of(column_of(name)), "text": one.text}
            for name, one in QUANTITIES.items()
        ],
    }


def mistakes(found: Mapping[str, Array], declared: list[Column]) -> list[str]:
    """Where columns of a run are not as declared: absent, unknown, of another type or shape."""
    known = {one.name: one for one in declared}
    groups = {one.when for one in declared if one.name in found} | {"always"}
    said = [f"{name} is in no schema" for name in found if name not in known]
    said += [f"{one.name} is missing" for one in declared if one.when in groups and one.name not in found]
    extents: dict[str, int] = {}
    for name, array in found.items():
        if name in known:
            said += _mistakes(known[name], array, extents)
    return said


def _mistakes(column: Column, array: Array, extents: dict[str, int]) -> list[str]:
    kind = "str" if array.dtype.kind == "U" else str(array.dtype)
    if kind != column.type or array.ndim != len(column.shape):
        return [f"{column.name} is {kind}{list(array.shape)}, not {column.type}{list(column.shape)}"]
    said = []
    for extent, size in zip(column.shape, array.shape, strict=True):
        if match := _EXTENT.fullmatch(extent):
            rows = size - int(match[2] or 0)
            if extents.setdefault(match[1], rows) != rows:
                said.append(f"{column.name} has {size} rows, but {match[1]} is {extents[match[1]]}")
    return said


def _column(name: str, declared: str, when: When) -> Column:
    match = _DECLARED.fullmatch(declared)
    if match is None or match["type"] not in {"str", *np.sctypeDict}:
        raise ValueError(f"{name} is declared as {declared!r}, not as TYPE[SHAPE]: text")
    shape: tuple[str, ...] = ("*",)
    if match["shape"]:
        shape = () if match["shape"] == " scalar" else tuple(match["shape"][1:-1].split(", "))
    return Column(name, match["type"], shape, unit_of(name), match["text"] or "", when)
