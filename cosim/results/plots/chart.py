"""What a figure shows, before anything is drawn: lines over an axis, each axis in one unit; as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]

UNITS = {
    "ps": ((1e12, "s"), (1e9, "ms"), (1e6, "us"), (1e3, "ns"), (1.0, "ps")),
    "span": ((86_400e12, "d"), (3_600e12, "h"), (60e12, "min"), (1e12, "s")),
    "bytes": ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")),
    "bps": ((1e12, "Tbps"), (1e9, "Gbps"), (1e6, "Mbps"), (1e3, "kbps"), (1.0, "bps")),
    "share": ((0.01, "%"),),
    "ratio": ((1.0, "x"),),
}
"""Units of each kind of number, and how much each is: the first that the largest value reaches."""


@dataclass(frozen=True, eq=False)
class Line:
    """``y`` over ``x``; of several seeds the mean, between the least, ``low``, and the most, ``high``."""

    label: str
    x: F64
    y: F64
    low: F64 | None = None
    high: F64 | None = None


@dataclass(frozen=True, eq=False)
class Axis:
    """What is along an axis; ``kind`` is one of :data:`UNITS`."""

    name: str
    kind: str
    log: bool = False


@dataclass(frozen=True, eq=False)
class LineChart:
    """Lines in the axes' first units (ps, bytes, bits a second, parts of one); ``steps``: each value holds
    until the next place; ``pairs``: each line is followed by its 99th percentile. :meth:`in_units` has
    them in what is written on the axes.
    """

    x: Axis
    y: Axis
    lines: Sequence[Line]
    steps: bool = False
    pairs: bool = False
    units: tuple[str, str] = ("", "")

    def in_units(self) -> LineChart:
        """The same, each axis in the unit of its largest value, logarithmic only beyond a decade."""
        xs = np.concatenate([line.x for line in self.lines])
        ys = np.concatenate([one for line in self.lines for one in (line.y, line.high) if one is not None])
        (per_x, unit_x), (per_y, unit_y) = _unit(self.x.kind, xs), _unit(self.y.kind, ys)
        lines = [
            replace(
                line,
                x=line.x / per_x,
                y=line.y / per_y,
                low=None if line.low is None else line.low / per_y,
                high=None if line.high is None else line.high / per_y,
            )
            for line in self.lines
        ]
        x, y = (replace(one, log=one.log and _decade(all_of)) for one, all_of in ((self.x, xs), (self.y, ys)))
        return replace(self, x=x, y=y, lines=lines, units=(unit_x, unit_y))

    @property
    def scales(self) -> dict[str, Any]:
        """Scales of logarithmic axes, as matplotlib's ``axes.set`` takes them.

        Marks are at powers of ten, and at 2 and 5 between few.
        """
        found: dict[str, Any] = {}
        for name, axis in (("x", self.x), ("y", self.y)):
            if axis.log:
                at = _log_ticks([getattr(line, name) for line in self.lines])
                words = [f"{one:g}" for one in at]
                found |= {f"{name}scale": "log", f"{name}ticks": at, f"{name}ticklabels": words}
        return found

    @property
    def labels(self) -> tuple[str, str]:
        """``flow completion time (ms)``, of both axes."""
        x, y = (f"{axis.name} ({unit})" for axis, unit in zip((self.x, self.y), self.units, strict=True))
        return x, y

    @property
    def columns(self) -> tuple[str, str]:
        """``flow_completion_time_ms``, of both axes."""
        words = {"%": "percent"}
        x, y = (
            f"{axis.name.replace(' ', '_')}_{words.get(unit, unit)}"
            for axis, unit in zip((self.x, self.y), self.units, strict=True)
        )
        return x, y

    def csv(self) -> str:
        """A row for each place of each line, units in the names; ``low`` and ``high`` empty of one seed."""
        x, y = self.columns
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["line", x, y, f"{y}_low", f"{y}_high"])
        for line in self.lines:
            ends = ([""] * len(line.x) if one is None else _digits(one) for one in (line.low, line.high))
            writer.writerows(
                zip([line.label] * len(line.x), _digits(line.x), _digits(line.y), *ends, strict=True)
            )
        return out.getvalue()


def _digits(values: F64) -> list[str]:
    return [f"{value:.9g}" for value in values.tolist()]


def _unit(kind: str, values: F64) -> tuple[float, str]:
    units, largest = UNITS[kind], float(values.max(initial=0))
    return next((one for one in units if largest >= one[0]), units[-1])


def _log_ticks(lines: Sequence[F64]) -> list[float]:
    values = np.concatenate(lines)
    low, high = values[values > 0].min(), values.max()
    powers = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    between = (1, 2, 5) if high < 1000 * low else (1,)
    return [
        float(f"{k}e{power}") for power in powers for k in between if low <= float(f"{k}e{power}") <= high
    ]


def _decade(values: F64) -> bool:
    above = values[values > 0]
    return bool(len(above)) and float(above.max()) >= 10 * float(above.min())
