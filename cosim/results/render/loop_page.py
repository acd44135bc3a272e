"""The page of closed loop against open loop."""

from __future__ import annotations

from collections.abc import Iterator

from cosim.results.open_loop import JobLoops, LoopComparison
from cosim.results.render.page import Lines, Page, Section
from cosim.units import format_time

_MAX_TIMES = 12
_WORTH_SAYING = 0.005


def loop_page(loops: LoopComparison) -> Page:
    """Both loops, job by job."""
    shown = ", ".join(loops.changes) or "nothing changed"
    head = [
        "closed loop against open loop",
        f"  closed: messages are sent when what they wait for has arrived, on {loops.network}",
        f"  open:   the messages of a recorded run ({shown}), sent at their recorded times, on the same",
    ]
    return [Section([Lines(head)]), *(Section([Lines([*_job_lines(job)])]) for job in loops.jobs)]


def _job_lines(job: JobLoops) -> Iterator[str]:
    yield f"{job.name}: time of an iteration"
    for label, times in (("recorded", job.recorded_ps), ("closed", job.closed_ps), ("open", job.open_ps)):
        mean = format_time(round(sum(times) / len(times))) if times else "-"
        each = ", ".join(map(format_time, times[:_MAX_TIMES])) + (" ..." if len(times) > _MAX_TIMES else "")
        yield f"  {label:<9} mean {mean:>10}   {each}"
    yield "  message times"
    for label, fct in (("closed", job.fct_closed_ps), ("open", job.fct_open_ps)):
        p50, p99, longest = ("-" if time is None else format_time(time) for time in fct)
        yield f"    {label:<7} p50 {p50:>10}   p99 {p99:>10}   max {longest:>10}"
    closed, opened = sum(job.closed_ps), sum(job.open_ps)
    if closed and opened:
        yield from _why(opened / closed - 1, job.early)


def _why(difference: float, early: float) -> Iterator[str]:
    says = f"  why: the open loop says {difference:+.1%} of the closed loop's time. "
    if early >= _WORTH_SAYING:
        yield f"{says}It sent {early:.0%} of the"
        yield "       messages (of iterations after the first) before their sender had received the iteration"
        yield "       before: in the closed loop the computation that sends them waits for what is late."
    elif abs(difference) >= _WORTH_SAYING:
        yield f"{says}Its messages leave when"
        yield "       they did in the recorded run; in the closed loop each waits for what it needs of its"
        yield "       own iteration, which comes later or sooner."
