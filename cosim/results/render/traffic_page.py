"""The page of ``cosim analyse``."""

from __future__ import annotations

from collections.abc import Sequence

from cosim.results.render.page import Lines, Page, PageTable, Section
from cosim.results.render.text import percent
from cosim.results.traffic.analysis import PartAnalysis, TrafficAnalysis
from cosim.results.traffic.beside import TrafficDifference
from cosim.results.traffic.causes import CauseFound
from cosim.results.traffic.logged import LoggedAnalysis
from cosim.results.traffic.patterns import Pattern
from cosim.results.traffic.ports import PortAnalysis
from cosim.results.traffic.rings import CommunicatorAnalysis, RingsDifference
from cosim.units import format_rate, format_size, format_time

_MOST_ROWS = 12
_MOST_HOSTS = 8


def traffic_page(analysis: TrafficAnalysis) -> Page:
    """The page of one run or capture."""
    head = [f"{analysis.name}: {analysis.kind}", *(f"  {note}" for note in analysis.notes)]
    sections = [Section([Lines(head)])]
    if analysis.transfers is not None:
        sections += _transfers(analysis)
    if analysis.ports is not None:
        sections += _ports(analysis.ports)
    if analysis.logged is not None:
        sections += _logged(analysis.logged)
    if analysis.communicators:
        sections += _communicators(analysis.communicators)
    return sections


def beside_page(one: TrafficDifference) -> Page:
    """Two analyses beside each other."""

    def shown(value: float | None) -> str:
        return "-" if value is None else f"{value:.4f}"

    head = [one.sentence, f"a: {one.a}", f"b: {one.b}", one.aligned]
    if one.rings is not None:
        return [Section([Lines([*head, *_missing(one.rings)])]), Section([PageTable(_ring_rows(one.rings))])]
    if one.collectives:
        return [Section([Lines(head)]), Section([PageTable(_collectives(one))])]
    rows = [
        ["beside", ""],
        ["  bytes, b / a", shown(one.bytes_ratio)],
        ["  cosine of pairs", shown(one.cosine)],
        ["  sizes: Wasserstein over a's mean", shown(one.wasserstein)],
        ["  sizes: Kolmogorov-Smirnov", shown(one.ks)],
        ["  period, b / a", shown(one.period_ratio)],
    ]
    return [Section([Lines(head)]), Section([PageTable(rows)])]


def _collectives(one: TrafficDifference) -> list[list[str]]:
    table = [["beside", "size", "ranks", "a", "b", "time, a", "time, b", "b / a"]]
    for row in one.collectives[:_MOST_ROWS]:
        times = [
            format_time(mean) if count else "-" for mean, count in zip(row.means_ps, row.counts, strict=True)
        ]
        ratio = f"{row.means_ps[1] / row.means_ps[0]:.3f}" if all(row.means_ps) else "-"
        counts = [f"{count:,}" for count in row.counts]
        table.append(
            [f"  {row.kind}", format_size(row.size_bytes), str(row.num_ranks), *counts, *times, ratio]
        )
    return table


def _missing(one: RingsDifference) -> list[str]:
    return [f"a says no rings of {name}" for name in one.missing[:_MOST_ROWS]]


def _ring_rows(one: RingsDifference) -> list[list[str]]:
    table = [["beside", "channels of b", "steps read", "NICs, b", "NICs, a", "b's rings"]]
    for row in one.rings[:_MOST_ROWS]:
        nics = [" ".join(map(str, some)) or "-" for some in (row.nics, row.expected_nics)]
        table.append(
            [f"  {row.communicator}", _numbers(row.ring.channels), str(row.ring.steps), *nics, row.verdict]
        )
    return table


def _communicators(found: Sequence[CommunicatorAnalysis]) -> list[Section]:
    rows = [["communicators", "alike", "ranks", "logged", "hosts", "channels", "rings"]]
    rings = [["rings", "channels", "steps read", "order"]]
    ways = [["connections", "", ""]]
    for one in found[:_MOST_ROWS]:
        of = one.communicator
        hosts = str(of.num_hosts or len(set(of.hosts.values())) or "-")
        if not of.num_hosts and len(of.hosts) < of.num_ranks:
            hosts = f"{hosts} or more"
        logged = str(len(of.hosts))
        rows.append(
            [f"  {of.name}", str(one.count), str(of.num_ranks), logged, hosts, str(of.num_channels or "-"),
             str(len(one.rings))]
        )  # fmt: skip
        for ring in one.rings[:_MOST_ROWS]:
            steps = f"{ring.steps} of {of.num_ranks}"
            rings.append([f"  {of.name}", _numbers(ring.channels), steps, _ranks(ring.order, of.num_ranks)])
        for how, count in one.connections[:_MOST_ROWS]:
            ways.append([f"  {of.name}", how, f"{count:,}"])
    more = len(found) - _MOST_ROWS
    shown = [Lines([f"  ... and {more} more"])] if more > 0 else []
    tables = [PageTable(rows), PageTable(rings, left=(0, 1, 3)), PageTable(ways, left=(0, 1))]
    return [Section([tables[0], *shown]), *(Section([one]) for one in tables[1:] if len(one.rows) > 1)]


def _numbers(channels: Sequence[int]) -> str:
    return " ".join(map(str, channels[:_MOST_HOSTS])) + (" ..." if len(channels) > _MOST_HOSTS else "")


def _ranks(order: Sequence[int], num_ranks: int) -> str:
    shown = " ".join(map(str, order[: 2 * _MOST_HOSTS + 4]))
    return shown if len(order) == num_ranks <= 2 * _MOST_HOSTS + 4 else f"{shown} ..."


def cause_page(found: CauseFound) -> Page:
    """What logs and counters of ports say together."""
    cause = found.cause
    if cause is not None:
        line = f"cause: {cause.kind}, {cause.place}: {cause.more}"
    elif found.slow:
        line = "cause: not told; several may act, or samples of ports are longer than a step of a collective"
    else:
        line = "cause: none, nothing is slow"
    return [Section([Lines([line])])]


def _logged(logged: LoggedAnalysis) -> list[Section]:
    rows = [["collectives", "size", "ranks", "count", "time", "first waits for last"]]
    for one in logged.kinds[:_MOST_ROWS]:
        times = format_time(one.mean_ps), format_time(one.wait_ps)
        rows.append(
            [f"  {one.kind}", format_size(one.size_bytes), str(one.num_ranks), f"{one.count:,}", *times]
        )
    lines = []
    if logged.incomplete:
        lines.append(f"{logged.incomplete:,} collectives left out: not all of their ranks logged them")
    lines += [
        f"slow rank: {one.process}, the last in {percent(one.share)} of its collectives; "
        f"the next waits {format_time(one.wait_ps)}"
        for one in logged.slow_ranks
        if not logged.slow_groups
    ]
    lines += [
        f"slow communicator: {one.group}, {one.kind} {one.ratio:.2f} times as long as in others: "
        f"{', '.join(one.processes[:_MOST_HOSTS])}"
        for one in logged.slow_groups
    ]
    if logged.slow_nic:
        lines.append(f"slow link or NIC: that of {logged.slow_nic}")
    if not logged.slow_ranks and not logged.slow_groups:
        lines.append("no rank and no communicator is slow")
    return [Section([PageTable(rows)]), Section([Lines(lines)])]


def _transfers(analysis: TrafficAnalysis) -> list[Section]:
    parts = analysis.parts
    if not parts:
        return [Section([Lines(["no bytes went between hosts"])])]
    columns = "traffic", "hosts", "transfers", "bytes", "busy", "period", "confidence", "jitter"
    table = [list(columns), *(_row(part) for part in parts[:_MOST_ROWS])]
    more = len(parts) - _MOST_ROWS
    shown = [Lines([f"  ... and {more} more"])] if more > 0 else []
    return [
        Section([PageTable(table), *shown]),
        Section([PageTable(_sizes(parts), left=(0,))]),
        Section([PageTable(_patterns(analysis), left=(0, 1, 6))]),
        Section([PageTable(_pairs(analysis), left=(0,))]),
    ]


def _row(part: PartAnalysis) -> list[str]:
    span = max(part.end_ps - part.start_ps, 1)
    periods = part.periods
    jitter = percent(periods[0].jitter) if len(periods) == 1 else "-"
    return [
        f"  {part.name}",
        str(len(part.hosts)),
        f"{part.transfers:,}",
        format_size(part.size_bytes),
        percent(part.busy_ps / span),
        " and ".join(format_time(round(one.period_ps)) for one in periods) or "none found",
        " and ".join(f"{one.confidence:.2f}" for one in periods) or "-",
        jitter,
    ]


def _sizes(parts: Sequence[PartAnalysis]) -> list[list[str]]:
    head = ["sizes", "median", "99 %", "took (median)", "99 %", "bursts", "each", "long", "skew"]
    return [
        head,
        *(
            [
                f"  {part.name}",
                format_size(part.sizes[2]),
                format_size(part.sizes[4]),
                format_time(round(part.durations[2])),
                format_time(round(part.durations[4])),
                str(part.bursts),
                format_size(part.burst_bytes),
                format_time(round(part.burst_ps)),
                f"{part.skew:.2f}",
            ]
            for part in parts[:_MOST_ROWS]
        ),
    ]


def _patterns(analysis: TrafficAnalysis) -> list[list[str]]:
    rows = [["patterns", "", "hosts", "groups", "bytes", "explained", "order of one group"]]
    for part in analysis.parts[:_MOST_ROWS]:
        for pattern, groups in part.patterns[:_MOST_ROWS]:
            rows.append(
                [
                    f"  {part.name}",
                    pattern.name,
                    str(len(pattern.order)),
                    str(groups),
                    format_size(pattern.size_bytes),
                    percent(pattern.explained),
                    _order(analysis, pattern),
                ]
            )
    return rows


def _order(analysis: TrafficAnalysis, pattern: Pattern) -> str:
    shown = [analysis.hosts[one] for one in pattern.order[:_MOST_HOSTS].tolist()]
    return " ".join([*shown, "..."] if len(pattern.order) > _MOST_HOSTS else shown)


def _pairs(analysis: TrafficAnalysis) -> list[list[str]]:
    pairs = analysis.pairs
    pairs = pairs[pairs[:, 2].argsort(kind="stable")[::-1]][:_MOST_ROWS]
    total = max(analysis.size_bytes, 1)
    rows = [["pairs with most bytes", "bytes", "share", "transfers"]]
    for src, dst, size, count in pairs.tolist():
        name = f"  {analysis.hosts[src]} -> {analysis.hosts[dst]}"
        rows.append([name, format_size(size), percent(size / total), f"{count:,}"])
    return rows


def _ports(ports: PortAnalysis) -> list[Section]:
    into, out = int(ports.in_bytes.sum()), int(ports.out_bytes.sum())
    gaps = ports.gap_ps
    lines = [
        f"in {format_size(into)}, out {format_size(out)} ({100 * (out / into - 1):+.4f} %)"
        if into
        else f"in 0 B, out {format_size(out)}",
        f"outside gaps: in {format_size(into - ports.gap_bytes[0])}, "
        f"out {format_size(out - ports.gap_bytes[1])}",
        f"{ports.num_busy} of {len(ports.names)} ports carry over 1 Gbps; "
        f"the highest rate between two samples is {format_rate(float(ports.peak_bps.max()))}",
        f"samples {format_time(ports.median_ps)} apart (median)",
    ]
    if gaps:
        shown = ", ".join(format_time(gap) for gap in gaps[:3])
        lines.append(f"{len(gaps)} gaps, the longest {shown}: their bytes are spread over them")
    if ports.sampler:
        shown = ", ".join(format_time(round(one)) for one in ports.sampler)
        lines.append(f"the sampler's own period: {shown}; it is no job's")
    rows = [["equal rates: one job", "ports", "in", "out", "spread", "period", "confidence"]]
    for number, group in enumerate(ports.groups, 1):
        rows.append(
            [
                f"  {number}",
                str(len(group.ports)),
                format_rate(group.in_bps),
                format_rate(group.out_bps),
                f"{100 * group.spread:.3f} %",
                " and ".join(format_time(round(one.bins * group.bin_ps)) for one in group.periods)
                or "none found",
                " and ".join(f"{one.confidence:.2f}" for one in group.periods) or "-",
            ]
        )
    sections = [Section([Lines(lines)])]
    if len(rows) > 1:
        sections.append(Section([PageTable(rows)]))
    return sections
