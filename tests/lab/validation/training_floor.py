"""What any model of published Megatron jobs must be off by, and what the table says of itself.

``python -m tests.lab.validation.training_floor`` (1 s), for each GPU, dense models and those with experts
apart:

- the lowest mean error of a model that gives equal jobs equal times: jobs that differ in no column but what
  was measured, of one release. Of each such set it has the time that is least wrong on average (a median,
  weighted), of all other jobs the measured one: in hindsight. Its bias is what that costs; a model may
  have none there, at the mean error of the next column. The widest set: its slowest over its fastest;
- the error and bias of the nearest other job: the FLOP/s that the table itself states for the other job
  on that GPU that differs in the fewest columns (first of all in the model, then in number types), by the
  mean of several that are as near. It knows measurements of the same cluster; no model here does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from tests.lab.validation.kernels import F64
from tests.lab.validation.megatron_jobs import Row, rows

NUMBERS = ("gpus", "gbs", "mbs", "seq", "tp", "pp", "cp", "vp", "ep")


def columns(row: Row) -> tuple[object, ...]:
    """All that the table says of a job but what was measured; of two values the first."""
    sharded = max(row.number("fsdp"), 1)
    return (row.job["model"], row.recipe, row.release, sharded, *(row.number(name) for name in NUMBERS))


def equal(found: Iterable[Row]) -> list[list[Row]]:
    """Jobs that differ in nothing stated, together."""
    sets: dict[tuple[object, ...], list[Row]] = {}
    for row in found:
        sets.setdefault((row.gpu, *columns(row)), []).append(row)
    return list(sets.values())


def least_wrong(seconds: F64) -> float:
    """The one time whose relative errors are the smallest on average: one of those measured."""
    return float(min(seconds, key=lambda one: np.abs(one / seconds - 1).sum()))


def unbiased(seconds: F64) -> float:
    """The one time whose relative errors add up to nothing: the harmonic mean."""
    return float(len(seconds) / (1 / seconds).sum())


def nearest(row: Row, every: Iterable[Row]) -> float | None:
    """Seconds of ``row`` at the FLOP/s of that GPU's other jobs that differ in the fewest columns."""

    def apart(other: Row) -> tuple[bool, bool, int]:
        differ = [one != two for one, two in zip(columns(row), columns(other), strict=True)]
        return row.model != other.model, row.recipe != other.recipe, sum(differ)

    others = [other for other in every if other.gpu == row.gpu and other is not row]
    alike = [other for other in others if other.has_experts == row.has_experts]
    if not alike:
        return None
    least = min(map(apart, alike))
    rates = [other.number("tflops_gpu") for other in alike if apart(other) == least]
    return row.seconds * row.number("tflops_gpu") / float(np.mean(rates))


def line(name: str, found: Sequence[Row]) -> str:
    """Of a group: rows, those with an equal, floor and bias, floor without bias, widest set, nearest."""
    sets = [np.array([row.seconds for row in each]) for each in equal(found)]
    best = np.concatenate([least_wrong(each) / each - 1 for each in sets])
    even = np.concatenate([unbiased(each) / each - 1 for each in sets])
    widest = max(float(each.max() / each.min()) for each in sets)
    with_equal = sum(len(each) for each in sets if len(each) > 1)
    told = [(nearest(row, found), row.seconds) for row in found]
    near = np.array([there / seconds - 1 for there, seconds in told if there is not None])
    floor = f"{np.abs(best).mean():6.1%} {best.mean():+6.1%}  {np.abs(even).mean():7.1%}  {widest:6.2f}"
    last = f"{np.abs(near).mean():7.1%} {near.mean():+6.1%}" if len(near) else f"{'none':>7}"
    return f"{name:18s} {len(found):4d} {with_equal:6d}  {floor}  {last}"


def main() -> None:
    """A line for each GPU, dense and experts, and for all."""
    every = [row for row in rows() if not row.why_not()]
    print(f"{'':18s} rows  equal   floor   bias  no bias  widest  nearest   bias")
    groups: dict[str, list[Row]] = {}
    for row in every:
        groups.setdefault(f"{row.gpu} {'experts' if row.has_experts else 'dense'}", []).append(row)
    for name, found in sorted(groups.items()):
        print(line(name, found))
    print(line("all", every))


if __name__ == "__main__":
    main()
