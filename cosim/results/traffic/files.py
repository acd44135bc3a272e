"""An analysis as files: the page, JSON, and a CSV behind each figure."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from cosim.files.folder import claimed, written_whole
from cosim.results.render.page import Page
from cosim.results.render.text import text
from cosim.results.render.traffic_page import beside_page, cause_page, traffic_page
from cosim.results.traffic.analysis import PartAnalysis, TrafficAnalysis
from cosim.results.traffic.beside import TrafficDifference, beside
from cosim.results.traffic.bytes_over_time import in_bins
from cosim.results.traffic.causes import CauseFound, find_cause
from cosim.results.traffic.ports import PortAnalysis
from cosim.results.traffic.rings import CommunicatorAnalysis

_BINS = 1000


def differences(analyses: Sequence[TrafficAnalysis]) -> list[TrafficDifference]:
    """Each after the first beside the first, where both have transfers, or collectives, or rings."""
    first = analyses[0]
    return [
        beside(first, one)
        for one in analyses[1:]
        if (first.transfers is not None and one.transfers is not None)
        or (first.logged is not None and one.logged is not None)
        or (first.communicators and one.communicators)
    ]


def _cause(analyses: Sequence[TrafficAnalysis]) -> CauseFound | None:
    """What one source's logs and one's counters say together; None: there aren't both."""
    logged = [one.logged for one in analyses if one.logged is not None and one.transfers is None]
    ports = [one.ports for one in analyses if one.ports is not None]
    if len(logged) != 1 or len(ports) != 1:
        return None
    return CauseFound(bool(logged[0].slow_ranks or logged[0].slow_groups), find_cause(logged[0], ports[0]))


def all_to_json(analyses: Sequence[TrafficAnalysis], compared: Sequence[TrafficDifference]) -> dict[str, Any]:
    """The analyses, their differences, and the cause where logs and counters are among them."""
    found = _cause(analyses)
    return {
        "analyses": [to_json(one) for one in analyses],
        "beside": [asdict(one) for one in compared],
        "cause": None if found is None or found.cause is None else asdict(found.cause),
    }


def to_json(analysis: TrafficAnalysis) -> dict[str, Any]:
    """Plain values: picoseconds, bytes, bits per second."""
    return {
        "name": analysis.name,
        "kind": analysis.kind,
        "notes": list(analysis.notes),
        "size_bytes": analysis.size_bytes,
        "parts": [_part(analysis, part) for part in analysis.parts],
        "logged": None
        if analysis.logged is None
        else {**asdict(analysis.logged), "slow_nic": analysis.logged.slow_nic},
        "ports": None if analysis.ports is None else _ports(analysis.ports),
        "communicators": [_communicator(one) for one in analysis.communicators],
    }


def _part(analysis: TrafficAnalysis, part: PartAnalysis) -> dict[str, Any]:
    plain = "name size_bytes transfers start_ps end_ps busy_ps bursts burst_bytes burst_ps gap_ps skew"
    return {
        **{name: getattr(part, name) for name in plain.split()},
        "hosts": [analysis.hosts[one] for one in part.hosts.tolist()],
        "sizes_bytes": list(part.sizes),
        "durations_ps": list(part.durations),
        "periods": [
            {"period_ps": one.period_ps, "confidence": one.confidence, "jitter": one.jitter}
            for one in part.periods
        ],
        "patterns": [
            {
                "name": pattern.name,
                "order": [analysis.hosts[one] for one in pattern.order.tolist()],
                "explained": pattern.explained,
                "size_bytes": pattern.size_bytes,
                "groups": groups,
            }
            for pattern, groups in part.patterns
        ],
    }


def _communicator(one: CommunicatorAnalysis) -> dict[str, Any]:
    found = one.communicator
    return {
        "name": found.name,
        "count": one.count,
        "num_ranks": found.num_ranks,
        "num_hosts": found.num_hosts,
        "num_channels": found.num_channels,
        "version": found.version,
        "hosts": dict(found.hosts),
        "rings": [asdict(ring) for ring in one.rings],
        "parents": {channel: dict(parents) for channel, parents in found.parents.items()},
        "connections": dict(one.connections),
        "contradictions": list(found.contradictions),
    }


def _ports(ports: PortAnalysis) -> dict[str, Any]:
    return {
        "in_bytes": int(ports.in_bytes.sum()),
        "out_bytes": int(ports.out_bytes.sum()),
        "in_gap_bytes": ports.gap_bytes[0],
        "out_gap_bytes": ports.gap_bytes[1],
        "num_ports": len(ports.names),
        "num_busy": ports.num_busy,
        "peak_bps": float(ports.peak_bps.max()),
        "gap_ps": list(ports.gap_ps),
        "median_ps": ports.median_ps,
        "sampler_ps": list(ports.sampler),
        "groups": [
            {
                "ports": list(group.ports),
                "in_bps": group.in_bps,
                "out_bps": group.out_bps,
                "spread": group.spread,
                "periods": [
                    {"period_ps": one.bins * group.bin_ps, "confidence": one.confidence}
                    for one in group.periods
                ],
            }
            for group in ports.groups
        ],
    }


def all_pages(analyses: Sequence[TrafficAnalysis], compared: Sequence[TrafficDifference]) -> list[Page]:
    """The page of each, those of their differences, and the cause where logs and counters are among them."""
    found = _cause(analyses)
    last = [] if found is None else [cause_page(found)]
    return [*map(traffic_page, analyses), *map(beside_page, compared), *last]


def write(
    analyses: Sequence[TrafficAnalysis],
    compared: Sequence[TrafficDifference],
    out: Path,
    *,
    inputs: Iterable[Path] = (),
    overwrite: bool = False,
) -> None:
    """Write ``page.txt``, ``analysis.json``, and of each source ``pairs``, ``over_time``, ``ports`` and
    ``rings`` as CSV.

    Raises
    ------
    InputError
        The folder can't be written to, or holds files of others.
    """
    tables = {
        f"{kind}{'' if len(analyses) == 1 else f'-{number}'}.csv": rows
        for number, one in enumerate(analyses, 1)
        for kind, rows in _tables(one)
    }
    names = ["page.txt", "analysis.json", *tables]
    with (
        claimed(out, names, inputs=inputs, overwrite=overwrite) as target,
        written_whole(target, names) as part,
    ):
        pages = "\n".join(map(text, all_pages(analyses, compared)))
        (part / "page.txt").write_text(pages, encoding="utf-8")
        values = json.dumps(all_to_json(analyses, compared), indent=1, ensure_ascii=False)
        (part / "analysis.json").write_text(values + "\n", encoding="utf-8")
        for name, rows in tables.items():
            with (part / name).open("w", encoding="utf-8", newline="") as file:
                csv.writer(file, lineterminator="\n").writerows(rows)


def _tables(one: TrafficAnalysis) -> Iterator[tuple[str, Iterable[Sequence[Any]]]]:
    if one.transfers is not None and len(one.transfers):
        yield "pairs", _pair_rows(one)
        yield "over_time", _time_rows(one)
    if one.ports is not None:
        yield "ports", _port_rows(one.ports)
    if one.communicators:
        yield "rings", _ring_rows(one.communicators)


def _pair_rows(one: TrafficAnalysis) -> Iterator[Sequence[Any]]:
    yield "src", "dst", "size_bytes", "transfers"
    for src, dst, size, count in one.pairs.tolist():
        yield one.hosts[src], one.hosts[dst], size, count


def _time_rows(one: TrafficAnalysis) -> Iterator[Sequence[Any]]:
    assert one.transfers is not None
    start, end = int(one.transfers.start_ps.min()), int(one.transfers.end_ps.max())
    bins = max(1, min(_BINS, end - start))
    edges = np.array([start + (end - start) * at // bins for at in range(bins + 1)], np.int64)
    yield "from_ps", "to_ps", "size_bytes"
    if end == start:
        yield start, end, one.size_bytes
        return
    # Rounded sums, so that all bins together have all bytes.
    sums = np.rint(np.cumsum(in_bins(one.transfers, edges))).astype(np.int64)
    sums[-1] = int(one.transfers.size_bytes.sum())
    rows = zip(edges[:-1].tolist(), edges[1:].tolist(), np.diff(sums, prepend=0).tolist(), strict=True)
    yield from rows


def _port_rows(ports: PortAnalysis) -> Iterator[Sequence[Any]]:
    group_of = {name: number for number, group in enumerate(ports.groups, 1) for name in group.ports}
    yield "port", "in_bytes", "out_bytes", "in_bps", "out_bps", "peak_bps", "group"
    columns = (ports.in_bytes, ports.out_bytes, ports.in_bps, ports.out_bps, ports.peak_bps)
    for name, *values in zip(ports.names, *(column.tolist() for column in columns), strict=True):
        yield name, *values, group_of.get(name, "")


def _ring_rows(communicators: Sequence[CommunicatorAnalysis]) -> Iterator[Sequence[Any]]:
    yield "communicator", "channel", "rank", "next", "way"
    for found in (one.communicator for one in communicators):
        for channel, nexts in sorted(found.nexts.items()):
            for rank, after in sorted(nexts.items()):
                way = channel, rank, after
                yield found.name, *way, found.ways.get(way, found.received.get(way, ""))
