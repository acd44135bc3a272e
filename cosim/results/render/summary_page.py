"""The page that a person reads at a glance: jobs, what if, collectives, links, messages, workloads, notes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import hypot

from cosim.network.simulator import BalancingUse
from cosim.results.links import LinkSummary
from cosim.results.network_statistics import PLACES, SPENT, FastForward, LineWaits, QueueSummary
from cosim.results.render.page import Lines, Page, PageTable, Section, doubts_section
from cosim.results.render.text import BLOCKS, percent, sparkline, trend
from cosim.results.requests import RequestSummary
from cosim.results.summary import BACKGROUND, JobSummary, MemoryUse, RankStatistics, Summary
from cosim.units import format_rate, format_size, format_time

_MAX_ROWS = 8
_MAX_LINKS = 5
_MAX_REPORTED = 8
_MAX_NOTES = 5
_MAX_TIMES = 6
_MANY_ITERATIONS = 50
_MAX_DETAILED = 4
"""With more jobs, the lines about each are left out."""
_REPORT_WIDTH = 110


def summary_page(summary: Summary, *, blocks: str = BLOCKS, width: int | None = None) -> Page:
    """Sections of the page.

    Parameters
    ----------
    summary
        Of the run.
    blocks
        Characters of sparklines, the lowest first.
    width
        Of the terminal in characters; None: no limit.
    """
    sections = [_head(summary, width), *doubts_section(summary.doubts)]
    if summary.jobs:
        sections.append(Section([*_jobs(summary, blocks)]))
    if summary.scheduling is not None:
        from cosim.results.render.scheduling_page import scheduling_section

        sections.append(scheduling_section(summary))
    if summary.collectives:
        sections.append(Section([*_collectives(summary)]))
    if summary.links:
        sections.append(Section([*_links(summary, blocks)]))
    sections.append(Section([Lines(_messages(summary))]))
    reports = {"topology": summary.topology_report}
    for job in summary.jobs[:_MAX_ROWS]:
        of_job = {"read": job.read, "ignored": job.ignored, "assumed": job.assumed}
        reports[f"workload of {job.name}"] = of_job
    for title, report in reports.items():
        if any(report.values()):
            sections.append(
                Section([Lines([title], bold=True), Lines([*_report(report)], width=_REPORT_WIDTH)])
            )
    if summary.warnings:
        sections.append(Section([Lines(["notes"], bold=True), Lines(_notes(summary.warnings))]))
    return sections


def _head(summary: Summary, width: int | None) -> Section:
    place = f"{summary.topology} ({summary.num_endpoints} endpoints), network {summary.network}"
    cost = f"{format_time(summary.end_ps)} simulated in {summary.wall_s:.2f} s"
    cost = f"{cost}, {summary.num_messages:,} messages"
    how = f"release {summary.release}, seed {summary.seed}, digest {summary.digest[:16]}"
    lines = [f"{cost}; {how}"] if width is None or len(cost) + len(how) + 2 <= width else [cost, how]
    parts = [Lines([f"{summary.name or 'run'}: {place}"], bold=True), Lines(lines, dim=how)]
    if summary.interrupted:
        said = f"INTERRUPTED ({summary.interrupted}): what follows was computed until then"
        parts.append(Lines([said], bold=True))
    return Section(parts)


def _jobs(summary: Summary, blocks: str) -> Iterator[PageTable | Lines]:
    parts = ["compute", "communication", "exposed", "idle"]
    if any(job.host_alone.max_ps for job in summary.jobs):
        parts.insert(3, "host_alone")
    heads = [part.replace("host_alone", "host-bound") for part in parts]
    rows = [["job (means)", "ranks", "iterations", "iteration", *heads]]
    for job in summary.jobs[:_MAX_ROWS]:
        done = str(job.iterations_done)
        if job.iterations_done != job.iterations_asked:
            done += f" of {job.iterations_asked}"
        noise = job.workload == BACKGROUND  # its computations are the times at which it sends
        cells = ["-" if noise else _per_iteration(job, getattr(job, part)) for part in parts]
        rows.append([f"  {job.name}", str(job.num_ranks), done, _time(job.iteration_mean_ps), *cells])
    yield PageTable(rows, optional=("ranks", "iterations", "host-bound"))
    several = len(summary.jobs) > 1
    if len(summary.jobs) > _MAX_ROWS:
        yield Lines([f"  ... and {len(summary.jobs) - _MAX_ROWS} more jobs"])
    if several:
        yield from _iterations(summary, blocks)
    if len(summary.jobs) <= _MAX_DETAILED:
        for job in summary.jobs:
            if job.workload != BACKGROUND:
                yield Lines([*_about_job(job, f"{job.name}: " if several else "", blocks)])
    if summary.overlap is not None:
        early, late = (
            f"{100 * x:.0f} %" for x in (summary.overlap.first_quarter, summary.overlap.last_quarter)
        )
        said = "  of the time in which jobs communicate, several do at once:"
        yield Lines([f"{said} first quarter {early}, last {late}"])


def _about_job(job: JobSummary, who: str, blocks: str) -> Iterator[str]:
    if not who and len(set(job.iteration_ps)) > 1:
        least, most = _time(job.iteration_min_ps), _time(job.iteration_max_ps)
        if len(job.iteration_ps) > _MAX_TIMES:
            ends = f"first {_time(job.iteration_ps[0])}, last {_time(job.iteration_ps[-1])}"
            shown = f"|{trend(job.iteration_ps, blocks)}| {ends}"
        else:
            shown = ", ".join(map(format_time, job.iteration_ps))
        yield f"  {who}iterations {shown} (from {least} to {most})"
    if job.minibatches > 1 and job.iteration_mean_ps is not None:
        each = format_time(job.iteration_mean_ps // job.minibatches)
        yield f"  {who}{each} a minibatch, {job.minibatches} of them an iteration"
    if job.interval_ps is not None and job.error is not None:
        low, high = map(format_time, job.interval_ps)
        yield (
            f"  {who}80 % of such iterations take {low} to {high}: the compute model's error is"
            f" {hypot(*job.error):.0%}, one sigma"
        )
    first, last = format_time(job.finish_min_ps), format_time(job.finish_max_ps)
    if first != last:
        yield f"  {who}first rank finished at {first}, last at {last}"
    if job.stragglers:
        worst = job.stragglers[0]
        others = job.stragglers[1:]
        ranks = f"rank{'' if len(others) == 1 else 's'} {', '.join(str(s.rank) for s in others)}"
        more = f" (then {ranks})" if others else ""
        yield (
            f"  {who}rank {worst.rank} on endpoint {worst.endpoint} was last at {worst.times_last:,}"
            f" collectives; others waited up to {format_time(worst.waited_ps)} in all{more}"
        )
    if job.memory is not None:
        yield f"  {who}{_about_memory(job, job.memory)}"
    yield from (f"  {who}{line}" for line in job.folding)
    if job.iterations_done >= _MANY_ITERATIONS and job.repeated:
        yield f"  {who}{job.repeated} iterations begin in the state of an earlier one, and are taken from it"
    elif job.iterations_done >= _MANY_ITERATIONS and job.simulated_because:
        yield f"  {who}every iteration is simulated: {job.simulated_because}"
    if job.training is not None:
        from cosim.results.render.training import about_training

        yield from (f"  {who}{line}" for line in about_training(job.training))
    if job.request is not None:
        yield f"  {who}{_about_request(job.request)}"
    if job.limit:
        yield f"  {who}limited by {job.limit}"
    free = job.free_communication_speedup if job.communication.max_ps else None
    if free is not None and job.free_communication_iteration_ps is not None:
        bound = format_time(job.free_communication_iteration_ps)
        yield (
            f"  {who}what if communication were free: at least {bound} an iteration,"
            f" at most {free:.2f} x faster"
        )


def _about_memory(job: JobSummary, memory: MemoryUse) -> str:
    """``4 accesses to remote memory, 4 GB in all: nothing else goes on for 25.0 ms 100%; ...``."""
    said = f"{memory.accesses:,} accesses to remote memory, {format_size(memory.size_bytes)} in all"
    said += f": nothing else goes on for {_per_iteration(job, memory.alone).strip()}"
    if memory.queued.max_ps:
        said += f"; they queued for {_per_iteration(job, memory.queued)}"
    return said


def _about_request(request: RequestSummary) -> str:
    """``first token after 75.2 ms, a further one every 13.2 ms; 9 tokens of 1 sequence: 49.7 tokens/s``."""
    said = f"first token after {format_time(request.first_token_ps)}"
    if request.further_token_ps is not None:
        said += f", a further one every {format_time(request.further_token_ps)}"
    which = "1 sequence" if request.sequences == 1 else f"{request.sequences:,} sequences"
    return f"{said}; {request.tokens:,} tokens of {which}: {request.tokens_per_s:,.4g} tokens/s"


def _iterations(summary: Summary, blocks: str) -> Iterator[PageTable]:
    """How the iterations of several jobs went, those that changed."""
    rows = [["iterations", "first", "last", "least", "most", "over the iterations"]]
    for job in summary.jobs[:_MAX_ROWS]:
        times = job.iteration_ps
        if len(set(times)) > 1:
            ends = (times[0], times[-1], job.iteration_min_ps, job.iteration_max_ps)
            rows.append([f"  {job.name}", *map(_time, ends), f"|{trend(times, blocks)}|"])
    if len(rows) > 1:
        yield PageTable(rows, left=(0, 5), optional=("over the iterations", "least", "most"))


def _collectives(summary: Summary) -> Iterator[PageTable | Lines]:
    heads = [
        "collective",
        "algorithm",
        "size",
        "ranks",
        "count",
        "time",
        "min",
        "max",
        "straggler",
        "algbw",
        "busbw",
    ]
    rows = [heads]
    for c in summary.collectives[:_MAX_ROWS]:
        cells = [c.algorithm, format_size(c.size_bytes), str(c.group_size), f"{c.count:,}"]
        cells += [format_time(t) for t in (c.mean_ps, c.min_ps, c.max_ps, c.wait_mean_ps)]
        rows.append([f"  {c.collective}", *cells, _rate(c.algbw_bps), _rate(c.busbw_bps)])
    left: tuple[int, ...] = (0, 1)
    if len(summary.jobs) > 1:
        jobs = ["job", *(c.job for c in summary.collectives)]
        rows = [[row[0], job, *row[1:]] for row, job in zip(rows, jobs, strict=False)]
        left = (0, 1, 2)
    yield PageTable(rows, left, optional=("min", "max", "algbw", "straggler", "count"))
    if len(summary.collectives) > _MAX_ROWS:
        yield Lines([f"  ... and {len(summary.collectives) - _MAX_ROWS} more kinds"])


def _of_each_tier(links: Sequence[LinkSummary]) -> list[LinkSummary]:
    """The busiest links, among them the busiest of each tier; tiers from the busiest down."""
    first = {link.tier: link for link in reversed(links)}
    wanted = [*first.values(), *(link for link in links if link not in first.values())][:_MAX_LINKS]
    ranked = [*dict.fromkeys(link.tier for link in links)]
    return sorted(wanted, key=lambda link: (ranked.index(link.tier), links.index(link)))


def _links(summary: Summary, blocks: str) -> Iterator[PageTable | Lines]:
    totals = summary.link_totals
    carried = f"  {totals.used:,} of {totals.links:,} links carried {format_size(totals.sent_bytes)}"
    if not totals.bin_ps:  # a simulator elsewhere may count bytes only
        rows = [["busiest links", "rate", "sent"]]
        rows += [
            [f"  {link.name}", format_rate(link.rate_bps), format_size(link.sent_bytes)]
            for link in _of_each_tier(summary.links)
        ]
        yield PageTable(rows)
        yield Lines([f"{carried}; the network did not measure how long they were busy"])
        return
    rows = [["busiest links", "rate", "sent", "busy", "peak", "over the run"]]
    rows += [
        [
            f"  {link.name}",
            format_rate(link.rate_bps),
            format_size(link.sent_bytes),
            percent(link.utilisation),
            percent(link.peak_utilisation),
            f"|{sparkline(link.over_time, blocks)}|",
        ]
        for link in _of_each_tier(summary.links)
    ]
    yield PageTable(rows, left=(0, 5), optional=("rate", "sent", "peak", "over the run"))
    yield Lines([f"{carried}, busy {percent(totals.mean_utilisation)} of the time on average"])


def _messages(summary: Summary) -> list[str]:
    traffic = summary.traffic
    lines = [f"traffic: {format_size(traffic.total_bytes)} between {traffic.pairs:,} pairs of endpoints"]
    if traffic.busiest_src is not None:
        most = format_size(traffic.busiest_bytes)
        lines[0] += f", most from {traffic.busiest_src} to {traffic.busiest_dst} ({most})"
    if summary.fct is not None:
        f = summary.fct
        marks = {"p50": f.p50_ps, "p90": f.p90_ps, "p99": f.p99_ps, "p99.9": f.p999_ps, "max": f.max_ps}
        lines.append("message times: " + ", ".join(f"{name} {format_time(t)}" for name, t in marks.items()))
    if summary.queues is not None:
        lines.append(render_queues(summary.queues))
    if summary.line_waits is not None:
        lines.extend(render_line_waits(summary.line_waits))
    if summary.fast_forward is not None:
        lines.append(render_fast_forward(summary.fast_forward))
    if summary.balancing is not None:
        lines.append(render_balancing(summary.balancing))
    return lines


def render_fast_forward(found: FastForward) -> str:
    """What was not simulated, in one line."""
    recalled, leapt = format_size(found.recalled_bytes), format_size(found.leapt_bytes)
    return (
        f"fast-forward: {recalled} on links recalled and {leapt} leapt over instead of simulated, "
        f"estimated error of these {100 * found.error:.2f} %"
    )


def render_balancing(use: BalancingUse) -> str:
    """What a load balancer did, in one line."""
    paths = f"{use.used:.3g} of {use.paths:.3g} paths used by a pair of endpoints, on average"
    return (
        f"balancer {use.balancer}: {use.choices:,} choices, {use.changes:,} of them changed a path; {paths}"
    )


def render_queues(queues: QueueSummary) -> str:
    """Queues, marks, drops and pauses in one line."""
    if queues.max_bytes == 0:
        where = "queues: none"
    else:
        size = f"p50 {format_size(queues.p50_bytes)}, p99 {format_size(queues.p99_bytes)}"
        where = f"queues: at most {size}, max {format_size(queues.max_bytes)} at {queues.link}"
    counts = [f"{queues.marks:,} packets marked", f"{queues.drops:,} dropped"]
    if queues.trims:
        counts.append(f"{queues.trims:,} trimmed")
    if queues.pause_ps:
        longest = f"at most {queues.pause_link} for {format_time(queues.pause_most_ps)}"
        together = f"{format_time(queues.pause_ps)} together"
        counts.append(f"{queues.paused_links} links paused, {longest}, {together}")
    return f"{where}; {', '.join(counts)}"


def render_line_waits(waits: LineWaits) -> list[str]:
    """Where lines of cache waited, and what messages' time went to."""
    where = ", ".join(f"{place} {format_time(round(getattr(waits, f'{place}_ps')))}" for place in PLACES)
    worst = f"longest at {waits.worst_link} ({format_time(round(waits.worst_link_ps))})"
    most = format_size(waits.in_flight_bytes)
    total = sum(waits.spent_ps.values()) or 1.0
    spent = ", ".join(
        f"{percent(waits.spent_ps[key] / total).strip()} on {name}" for key, name in SPENT.items()
    )
    return [
        f"lines: {waits.lines:,} over links; a line waits at {where}, {worst}; "
        f"at most {most} of a GPU in flight",
        f"messages of lines spend {spent}",
        *(
            []
            if waits.computed is None
            else [f"computations take {waits.computed:.3g} times what they take with all units"]
        ),
    ]


def _report(report: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """What was read, ignored and assumed to make a workload or a topology."""
    for name, entries in report.items():
        if entries:
            left = len(entries) - _MAX_REPORTED
            more = [f"and {left} more in --json"] if left > 0 else []
            shown = [*entries[:_MAX_REPORTED], *more]
            if name == "assumed":
                yield from (f"  {name}: {line}" for line in shown)
            else:
                yield f"  {name}: {', '.join(shown)}"


def _notes(warnings: Sequence[str]) -> list[str]:
    shown = [f"  {text}" for text in warnings[:_MAX_NOTES]]
    return shown + ([f"  ... and {len(warnings) - _MAX_NOTES} more"] if len(warnings) > _MAX_NOTES else [])


def _per_iteration(job: JobSummary, part: RankStatistics) -> str:
    """A mean over ranks and iterations, with its share of the job's time."""
    value = part.mean_ps // job.iterations_done if job.iterations_done else part.mean_ps
    return f"{format_time(value)} {100 * part.share:3.0f}%"


def _time(ps: int | None) -> str:
    return "-" if ps is None else format_time(ps)


def _rate(bps: float | None) -> str:
    return "-" if bps is None else format_rate(bps)
