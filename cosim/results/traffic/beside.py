"""Two analyses beside each other: total bytes, who sends to whom, sizes of transfers, periods. Where one has
logs of collectives alone, its collectives are set beside the other's, and so are rings.

Hosts are the same where all names of the smaller set are in the other one. Else, where both have as many,
they are aligned in order of their numbers, which the page says.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosim.captures.traffic import I64
from cosim.results.traffic.analysis import TrafficAnalysis
from cosim.results.traffic.logged import LoggedAnalysis
from cosim.results.traffic.rings import RingsDifference, rings_beside

F64 = NDArray[np.float64]


@dataclass(frozen=True)
class CollectiveDifference:
    """Collectives of one kind, size and number of ranks: how many, and their mean time, of a and of b."""

    kind: str
    size_bytes: int
    num_ranks: int
    counts: tuple[int, int]
    means_ps: tuple[int, int]


@dataclass(frozen=True)
class TrafficDifference:
    """How b differs from a. Ratios are b over a; None: one of both has none.

    ``cosine`` is that of the pairs' bytes: 1 means the same shares. ``wasserstein`` is the distance of the
    transfers' sizes over a's mean size, ``ks`` the largest distance of their distributions (Kolmogorov and
    Smirnov). ``aligned`` says how hosts were set beside each other. ``sentence`` is what a person would say.
    """

    a: str
    b: str
    bytes_ratio: float | None
    cosine: float | None
    wasserstein: float | None
    ks: float | None
    period_ratio: float | None
    same_patterns: bool
    aligned: str
    sentence: str
    collectives: tuple[CollectiveDifference, ...] = ()
    rings: RingsDifference | None = None


def beside(a: TrafficAnalysis, b: TrafficAnalysis) -> TrafficDifference:
    """Set b beside a."""
    if a.communicators and b.communicators:
        rings = rings_beside(a.communicators, b.communicators)
        return TrafficDifference(
            a.name, b.name, None, None, None, None, None, False,
            "communicators of as many ranks, in order", rings.sentence, rings=rings,
        )  # fmt: skip
    if a.logged is not None and b.logged is not None and (a.transfers is None or b.transfers is None):
        return _logs_beside(a.name, a.logged, b.name, b.logged)
    aligned, cosine = _cosine(a, b)
    ratio = b.size_bytes / a.size_bytes if a.size_bytes else None
    sizes = [_sizes(one) for one in (a, b)]
    both = all(len(one) for one in sizes)
    periods = [
        one.parts[0].periods[0].period_ps if one.parts and one.parts[0].periods else None for one in (a, b)
    ]
    period_ratio = periods[1] / periods[0] if periods[0] and periods[1] else None
    same = _names(a) == _names(b)
    return TrafficDifference(
        a.name,
        b.name,
        ratio,
        cosine,
        _wasserstein(*sizes) if both else None,
        _ks(*sizes) if both else None,
        period_ratio,
        same,
        aligned,
        _sentence(ratio, cosine, period_ratio, same),
    )


def _logs_beside(a: str, ours: LoggedAnalysis, b: str, theirs: LoggedAnalysis) -> TrafficDifference:
    of = [{(one.kind, one.size_bytes, one.num_ranks): one for one in logs.kinds} for logs in (ours, theirs)]
    rows = []
    for key in dict.fromkeys([*of[0], *of[1]]):
        found = [one.get(key) for one in of]
        counts = [0 if one is None else one.count for one in found]
        means = [0 if one is None else one.mean_ps for one in found]
        rows.append(CollectiveDifference(*key, (counts[0], counts[1]), (means[0], means[1])))
    total = [sum(row.counts[at] * row.size_bytes for row in rows) for at in (0, 1)]
    ratio = total[1] / total[0] if total[0] else None
    same = all(row.counts[0] and row.counts[1] for row in rows)
    took = [sum(row.means_ps[at] * row.counts[0] for row in rows if row.counts[1]) for at in (0, 1)]
    said = [_bytes_said(ratio)] if ratio is not None else []
    said.append("in collectives of the same kinds and sizes" if same else "in other collectives")
    if took[0]:
        time = took[1] / took[0]
        said.append("in the same time" if abs(time - 1) < 0.01 else f"in {time:.3g} times the time")
    return TrafficDifference(
        a, b, ratio, None, None, None, None, same, "collectives by kind, bytes and ranks",
        f"b has {', '.join(said)}", tuple(rows),
    )  # fmt: skip


def _sizes(one: TrafficAnalysis) -> I64:
    found = one.transfers
    return np.zeros(0, np.int64) if found is None else np.sort(found.size_bytes[found.size_bytes > 0])


def _names(one: TrafficAnalysis) -> set[tuple[str, int]]:
    return {(pattern.name, len(pattern.order)) for part in one.parts for pattern, _ in part.patterns}


def _cosine(a: TrafficAnalysis, b: TrafficAnalysis) -> tuple[str, float | None]:
    used = [sorted({*one.pairs[:, 0].tolist(), *one.pairs[:, 1].tolist()}) for one in (a, b)]
    names = [[one.hosts[at] for at in hosts] for one, hosts in zip((a, b), used, strict=True)]
    few, many = sorted(names, key=len)
    if not few:
        return "one has no transfers", None
    if set(few) <= set(many):
        places: list[dict[str, int]] = [{name: at for at, name in enumerate(sorted(many))}] * 2
        aligned = "hosts by their names"
    elif len(few) == len(many):
        places = [{name: at for at, name in enumerate(one)} for one in names]
        aligned = "hosts in order of their numbers, since names differ"
    else:
        return "hosts can't be aligned: neither names nor numbers agree; --hosts names them", None
    count = len(many)
    cells = [_cells(one, place, count) for one, place in zip((a, b), places, strict=True)]
    scale = float(np.linalg.norm(cells[0]) * np.linalg.norm(cells[1]))
    return aligned, float(cells[0] @ cells[1] / scale) if scale else None


def _cells(one: TrafficAnalysis, place: dict[str, int], count: int) -> F64:
    src, dst = ([place[one.hosts[at]] for at in one.pairs[:, column].tolist()] for column in (0, 1))
    cells = np.zeros(count * count)
    np.add.at(cells, np.array(src) * count + np.array(dst), one.pairs[:, 2])
    return cells


def _wasserstein(a: I64, b: I64) -> float:
    values = np.sort(np.concatenate([a, b]))
    shares = [np.searchsorted(one, values[:-1], side="right") / len(one) for one in (a, b)]
    return float((np.abs(shares[0] - shares[1]) * np.diff(values)).sum() / a.mean())


def _ks(a: I64, b: I64) -> float:
    values = np.unique(np.concatenate([a, b]))
    shares = [np.searchsorted(one, values, side="right") / len(one) for one in (a, b)]
    return float(np.abs(shares[0] - shares[1]).max())


def _bytes_said(ratio: float) -> str:
    return "as many bytes" if abs(ratio - 1) < 0.01 else f"{ratio:.3g} times the bytes"


def _sentence(ratio: float | None, cosine: float | None, period: float | None, same: bool) -> str:
    said = []
    if ratio is not None:
        said.append(_bytes_said(ratio))
    if cosine is not None:
        said.append(
            "between the same pairs" if cosine > 0.99 else f"between other pairs (cosine {cosine:.2f})"
        )
    if period is not None:
        said.append("in the same period" if abs(period - 1) < 0.01 else f"in {period:.3g} times the period")
    said.append("in the same patterns" if same else "in other patterns")
    return f"b has {', '.join(said)}"
