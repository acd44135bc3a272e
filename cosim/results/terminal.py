"""The page that a person reads at a glance: jobs, what if, collectives, links, messages, workloads, notes."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TextIO

from cosim.results.queues import render_queues
from cosim.results.summary import BACKGROUND, JobSummary, Spread, Summary
from cosim.units import format_rate, format_size, format_time

_BLOCKS = "▁▂▃▄▅▆▇█"
_ASCII = ".:-=+*#%"
_BOLD, _DIM, _RESET = "\033[1m", "\033[2m", "\033[0m"
_MAX_ROWS = 8
_MAX_LINKS = 5
_MAX_SAID = 8
_WIDE = 110
_MAX_TIMES = 6
_MAX_COURSE = 48
_MAX_TOLD = 4


def render(
    summary: Summary, *, color: bool = False, plain_ascii: bool = False, width: int | None = None
) -> str:
    """The page as text, a line feed at its end.

    ``plain_ascii`` is for terminals without UTF-8. Where ``width`` is given, tables leave out what matters
    least until they fit, and other lines are wrapped.
    """
    lines = _head(summary, color, width)
    blocks = _ASCII if plain_ascii else _BLOCKS
    for table in (
        _jobs(summary, blocks, width),
        _collectives(summary, width),
        _links(summary, blocks, width),
    ):
        if table:
            lines += ["", _bold(table[0], color), *table[1:]]
    lines += ["", *_wrapped(_messages(summary), width)]
    said = _wrapped(_report(summary.topology_report), width or _WIDE)
    if said:
        lines += ["", _bold("topology", color), *said]
    for job in summary.jobs[:_MAX_ROWS]:
        of_job = {"read": job.read, "ignored": job.ignored, "invented": job.invented}
        report = _wrapped(_report(of_job), width or _WIDE)
        if report:
            lines += ["", _bold(f"workload of {job.name}", color), *report]
    if summary.warnings:
        lines += ["", _bold("notes", color), *_wrapped(_at_most(list(summary.warnings), 5), width)]
    text = "\n".join(line.rstrip() for line in lines) + "\n"
    return text.encode("ascii", "replace").decode("ascii") if plain_ascii else text


def show(summary: Summary, file: TextIO | None = None) -> None:
    """Print the page: in colour on a terminal (unless NO_COLOR is set), plain elsewhere."""
    out = sys.stdout if file is None else file
    color = out.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    try:
        _BLOCKS.encode(out.encoding or "utf-8")
        plain_ascii = False
    except (UnicodeEncodeError, LookupError):
        plain_ascii = True
    width = shutil.get_terminal_size().columns if out.isatty() else None
    out.write(render(summary, color=color, plain_ascii=plain_ascii, width=width))


def align(rows: Sequence[Sequence[str]], left: Sequence[int] = (0,), gap: str = "  ") -> list[str]:
    """Rows of cells as lines; columns in ``left`` flush left, the others flush right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        gap.join(
            c.ljust(w) if i in left else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def _fitted(
    rows: Sequence[Sequence[str]], width: int | None, dispensable: Sequence[str], left: Sequence[str]
) -> list[str]:
    """Rows as lines no longer than ``width``, without ``dispensable`` columns, the first of them first."""
    heads = rows[0]
    gone: list[str] = []
    while True:
        kept = [i for i, head in enumerate(heads) if head not in gone]
        chosen = [[row[i] for i in kept] for row in rows]
        flush = [n for n, i in enumerate(kept) if i == 0 or heads[i] in left]
        lines = align(chosen, left=flush)
        if width is None or max(map(len, lines)) <= width or len(gone) == len(dispensable):
            return lines
        gone.append(dispensable[len(gone)])


def _wrapped(lines: Sequence[str], width: int | None) -> list[str]:
    if width is None:
        return list(lines)
    wrap = textwrap.TextWrapper(
        max(width, 20), subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )
    return [part for line in lines for part in wrap.wrap(line) or [""]]


def sparkline(values: Sequence[float], blocks: str = _BLOCKS) -> str:
    """One character for each value between 0 and 1; a blank for exactly 0."""
    last = len(blocks) - 1
    return "".join(" " if v <= 0 else blocks[min(int(v * len(blocks)), last)] for v in values)


def percent(share: float) -> str:
    """``12.3 %``."""
    return f"{100 * share:.1f} %"


def _bold(text: str, color: bool) -> str:
    return f"{_BOLD}{text}{_RESET}" if color else text


def _head(summary: Summary, color: bool, width: int | None) -> list[str]:
    name = summary.name or "run"
    place = f"{summary.topology} ({summary.num_endpoints} endpoints), network {summary.network}"
    cost = f"{format_time(summary.end_ps)} simulated in {summary.wall_s:.2f} s"
    how = f"release {summary.release}, seed {summary.seed}, digest {summary.digest[:16]}"
    cost = f"{cost}, {summary.num_messages:,} messages"
    parts = [f"{cost}; {how}"] if width is None or len(cost) + len(how) + 2 <= width else [cost, how]
    if color:
        parts[-1] = parts[-1].replace(how, f"{_DIM}{how}{_RESET}")
    lines = [_bold(f"{name}: {place}", color), *parts]
    if summary.interrupted:
        lines.append(
            _bold(f"INTERRUPTED ({summary.interrupted}): what follows was computed until then", color)
        )
    return lines


def _jobs(summary: Summary, blocks: str, width: int | None) -> list[str]:
    parts = ["compute", "communication", "exposed", "idle"]
    if any(job.host_alone.max_ps for job in summary.jobs):
        parts.insert(3, "host_alone")
    heads = [part.replace("_", " ") for part in parts]
    rows = [["job (means)", "ranks", "iterations", "iteration", *heads]]
    for job in summary.jobs[:_MAX_ROWS]:
        done = str(job.iterations_done)
        if job.iterations_done != job.iterations_asked:
            done += f" of {job.iterations_asked}"
        noise = job.workload == BACKGROUND  # its computations are the times at which it sends
        cells = ["-" if noise else _per_iteration(job, getattr(job, part)) for part in parts]
        rows.append([f"  {job.name}", str(job.num_ranks), done, _time(job.iteration_mean_ps), *cells])
    if len(rows) == 1:
        return []
    lines = _fitted(rows, width, ("ranks", "iterations", "host alone"), ())
    if len(summary.jobs) > _MAX_ROWS:
        lines.append(f"  ... and {len(summary.jobs) - _MAX_ROWS} more jobs")
    if len(summary.jobs) > 1:
        lines += _iterations(summary, blocks, width)
    if len(summary.jobs) <= _MAX_TOLD:
        for job in summary.jobs:
            if job.workload == BACKGROUND:
                continue
            lines += _wrapped(
                _about_job(job, f"{job.name}: " if len(summary.jobs) > 1 else "", blocks), width
            )
    if summary.overlap is not None:
        early, late = (
            f"{100 * x:.0f} %" for x in (summary.overlap.first_quarter, summary.overlap.last_quarter)
        )
        said = (
            f"  of the time in which jobs communicate, several do at once: first quarter {early}, last {late}"
        )
        lines += _wrapped([said], width)
    return lines


def _about_job(job: JobSummary, who: str, blocks: str) -> list[str]:
    lines = []
    if not who and len(set(job.iteration_ps)) > 1:
        least, most = _time(job.iteration_min_ps), _time(job.iteration_max_ps)
        if len(job.iteration_ps) > _MAX_TIMES:
            ends = f"first {_time(job.iteration_ps[0])}, last {_time(job.iteration_ps[-1])}"
            shown = f"|{_course(job.iteration_ps, blocks)}| {ends}"
        else:
            shown = ", ".join(map(format_time, job.iteration_ps))
        lines.append(f"  {who}iterations {shown} (from {least} to {most})")
    first, last = format_time(job.finish_min_ps), format_time(job.finish_max_ps)
    if first != last:
        lines.append(f"  {who}first rank finished at {first}, last at {last}")
    if job.stragglers:
        worst = job.stragglers[0]
        more = f" (then {', '.join(str(s.rank) for s in job.stragglers[1:])})" if job.stragglers[1:] else ""
        lines.append(
            f"  {who}rank {worst.rank} on endpoint {worst.endpoint} was last at {worst.times_last:,}"
            f" collectives; others waited up to {format_time(worst.waited_ps)} in all{more}"
        )
    lines += [f"  {who}{line}" for line in job.folding]
    if job.free_communication_speedup is not None and job.free_communication_iteration_ps is not None:
        bound = format_time(job.free_communication_iteration_ps)
        lines.append(
            f"  {who}what if communication were free: at least {bound} an iteration,"
            f" at most {job.free_communication_speedup:.2f} x faster"
        )
    return lines


def _iterations(summary: Summary, blocks: str, width: int | None) -> list[str]:
    """How the iterations of several jobs went, those that changed."""
    rows = [["iterations", "first", "last", "least", "most", "over the iterations"]]
    for job in summary.jobs[:_MAX_ROWS]:
        times = job.iteration_ps
        if len(set(times)) > 1:
            ends = (times[0], times[-1], job.iteration_min_ps, job.iteration_max_ps)
            rows.append([f"  {job.name}", *map(_time, ends), f"|{_course(times, blocks)}|"])
    if len(rows) == 1:
        return []
    return _fitted(rows, width, ("over the iterations", "least", "most"), ("over the iterations",))


def _course(times: Sequence[int], blocks: str) -> str:
    """A character for each iteration, or for the mean of several; lowest for the least."""
    parts = min(len(times), _MAX_COURSE)
    bounds = [len(times) * k // parts for k in range(parts + 1)]
    means = [sum(times[a:b]) / (b - a) for a, b in pairwise(bounds)]
    low, high = min(means), max(means)
    last = len(blocks) - 1
    return "".join(blocks[round((mean - low) / (high - low) * last) if high > low else 0] for mean in means)


def _collectives(summary: Summary, width: int | None) -> list[str]:
    if not summary.collectives:
        return []
    several = len(summary.jobs) > 1
    names = [
        "collective",
        "algorithm",
        "size",
        "ranks",
        "count",
        "time",
        "min",
        "max",
        "late wait",
        "algbw",
        "busbw",
    ]
    rows = [[*names[:1], *(["job"] if several else []), *names[1:]]]
    for c in summary.collectives[:_MAX_ROWS]:
        cells = [c.algorithm, format_size(c.size_bytes), str(c.group_size), f"{c.count:,}"]
        cells += [format_time(t) for t in (c.mean_ps, c.min_ps, c.max_ps, c.wait_mean_ps)]
        cells += [_rate(c.algbw_bps), _rate(c.busbw_bps)]
        rows.append([f"  {c.collective}", *([c.job] if several else []), *cells])
    lines = _fitted(rows, width, ("min", "max", "algbw", "late wait", "count"), ("job", "algorithm"))
    if len(summary.collectives) > _MAX_ROWS:
        lines.append(f"  ... and {len(summary.collectives) - _MAX_ROWS} more kinds")
    return lines


def _links(summary: Summary, blocks: str, width: int | None) -> list[str]:
    if not summary.links:
        return []
    rows = [
        [
            f"  {link.name}",
            format_rate(link.rate_bps),
            format_size(link.sent_bytes),
            percent(link.utilisation),
            percent(link.peak_utilisation),
            f"|{sparkline(link.over_time, blocks)}|",
        ]
        for link in summary.links[:_MAX_LINKS]
    ]
    rows.insert(0, ["busiest links", "rate", "sent", "busy", "peak", "over the run"])
    totals = summary.link_totals
    total = (
        f"  {totals.used:,} of {totals.links:,} links carried {format_size(totals.sent_bytes)},"
        f" busy {percent(totals.mean_utilisation)} of the time on average"
    )
    lines = _fitted(rows, width, ("rate", "sent", "peak", "over the run"), ("over the run",))
    return [*lines, *_wrapped([total], width)]


def _messages(summary: Summary) -> list[str]:
    traffic = summary.traffic
    lines = [f"traffic: {format_size(traffic.total_bytes)} between {traffic.pairs:,} pairs of endpoints"]
    if traffic.busiest_src is not None:
        most = format_size(traffic.busiest_bytes)
        lines[0] += f", most from {traffic.busiest_src} to {traffic.busiest_dst} ({most})"
    if summary.fct is not None:
        f = summary.fct
        marks = (
            ("p50", f.p50_ps),
            ("p90", f.p90_ps),
            ("p99", f.p99_ps),
            ("p99.9", f.p999_ps),
            ("max", f.max_ps),
        )
        lines.append("message times: " + ", ".join(f"{name} {format_time(t)}" for name, t in marks))
    if summary.queues is not None:
        lines.append(render_queues(summary.queues))
    return lines


def _report(report: Mapping[str, Sequence[str]]) -> list[str]:
    """What was read, ignored and invented to make a workload or a topology."""
    lines = []
    for name, said in report.items():
        if said:
            more = f", and {len(said) - _MAX_SAID} more in --json" if len(said) > _MAX_SAID else ""
            lines.append(f"  {name}: {', '.join(said[:_MAX_SAID])}{more}")
    return lines


def _per_iteration(job: JobSummary, part: Spread) -> str:
    """A mean over ranks and iterations, with its share of the job's time."""
    value = part.mean_ps // job.iterations_done if job.iterations_done else part.mean_ps
    return f"{format_time(value)} {100 * part.share:3.0f}%"


def _time(ps: int | None) -> str:
    return "-" if ps is None else format_time(ps)


def _rate(bps: float | None) -> str:
    return "-" if bps is None else format_rate(bps)


def _at_most(texts: list[str], count: int) -> list[str]:
    shown = [f"  {text}" for text in texts[:count]]
    return shown + ([f"  ... and {len(texts) - count} more"] if len(texts) > count else [])
