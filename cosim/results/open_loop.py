"""Closed loop against open loop: times of iterations and of messages, job by job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cosim.engine.records import MessageRecords, Records
from cosim.results.study import StudyResult
from cosim.results.summary import iteration_ends

if TYPE_CHECKING:
    from cosim.results.render.page import Page

I64 = NDArray[np.int64]


@dataclass(frozen=True)
class JobLoops:
    """One job: times of its iterations, and of its messages.

    ``recorded_ps``, ``closed_ps``, ``open_ps`` are times of the iterations that all three have. ``early`` is
    the share of messages (of iterations after the first) that the open loop sent before all of the iteration
    before had arrived at their sender: none in a closed loop. ``fct_*``
    are message times in the closed and in the open loop: median, 99th percentile and longest; None of none.
    """

    name: str
    recorded_ps: tuple[int, ...]
    closed_ps: tuple[int, ...]
    open_ps: tuple[int, ...]
    early: float
    fct_closed_ps: tuple[int | None, ...]
    fct_open_ps: tuple[int | None, ...]


@dataclass(frozen=True)
class LoopComparison(StudyResult):
    """Both loops of one scenario on ``network``. ``changes`` are the settings of the recorded run."""

    network: str
    changes: tuple[str, ...]
    jobs: tuple[JobLoops, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain values; times of messages as percentiles."""
        return {
            "network": self.network,
            "changes": list(self.changes),
            "jobs": [
                {
                    "name": job.name,
                    **{f"{loop}_ps": getattr(job, f"{loop}_ps") for loop in ("recorded", "closed", "open")},
                    "early": job.early,
                    **{
                        f"fct_{loop}_{name}_ps": time
                        for loop in ("closed", "open")
                        for name, time in zip(_PARTS, getattr(job, f"fct_{loop}_ps"), strict=True)
                    },
                }
                for job in self.jobs
            ],
        }

    def page(self) -> Page:
        """Both loops, job by job."""
        from cosim.results.render.loop_page import loop_page

        return loop_page(self)


_PARTS = {"p50": 0.5, "p99": 0.99, "max": 1.0}


def _percentiles(fct_ps: I64) -> list[int | None]:
    """Exact ones of times; None of none."""
    times = np.sort(fct_ps)
    last = len(times) - 1
    return [int(times[min(last, int(part * len(times)))]) if len(times) else None for part in _PARTS.values()]


def closed_job(closed: Records, number: int) -> dict[str, Any]:
    """Name and times of one job of a run with messages, picoseconds."""
    messages = closed.messages
    assert messages is not None
    mine = messages.job == number
    job = closed.jobs[number]
    return {
        "name": job.name,
        "iterations": _times(iteration_ends(closed.iteration_end_ps[number]), job.start_ps),
        "messages": _percentiles(messages.end_ps[mine] - messages.start_ps[mine]),
    }


def open_job(recorded: Records, ends: I64, number: int) -> dict[str, Any]:
    """Times of one job of a recorded run, and of its messages replayed, picoseconds.

    Parameters
    ----------
    recorded
        The run whose messages were replayed.
    ends
        int64[messages of ``recorded``]: when each arrived in the open loop, picoseconds.
    number
        The job's.
    """
    messages = recorded.messages
    assert messages is not None
    recorded_end = iteration_ends(recorded.iteration_end_ps[number])
    mine = messages.job == number
    open_end = np.array(recorded_end, np.int64)
    for k in range(len(open_end)):
        of_it = mine & (messages.iteration == k)
        if of_it.any():
            # What follows the last arrival (an optimizer's step) follows it here too, and takes as long.
            tail = recorded_end[k] - messages.end_ps[of_it].max()
            open_end[k] = max(int(recorded_end[k]), int(ends[of_it].max() + tail))
    start = recorded.jobs[number].start_ps
    return {
        "recorded": _times(recorded_end, start),
        "open": _times(np.maximum.accumulate(open_end), start),
        "early": _early(messages, mine, ends),
        "messages": _percentiles(ends[mine] - messages.start_ps[mine]),
    }


def job_loops(closed: dict[str, Any], opened: dict[str, Any]) -> JobLoops:
    """One job of both loops, of what :func:`closed_job` and :func:`open_job` gave."""
    count = min(len(closed["iterations"]), len(opened["recorded"]))
    times = (opened["recorded"], closed["iterations"], opened["open"])
    recorded, own, replayed = (tuple(one[:count]) for one in times)
    fct = tuple(closed["messages"]), tuple(opened["messages"])
    return JobLoops(closed["name"], recorded, own, replayed, opened["early"], *fct)


def _early(messages: MessageRecords, mine: NDArray[np.bool_], ends: I64) -> float:
    """Share of messages sent before all of the iteration before had arrived at their sender."""
    src, dst, iteration = messages.src[mine], messages.dst[mine], messages.iteration[mine]
    if not len(src) or iteration.max() == iteration.min():
        return 0.0
    arrived = np.zeros((int(iteration.max()) + 1, int(max(src.max(), dst.max())) + 1), np.int64)
    np.maximum.at(arrived, (iteration, dst), ends[mine])
    later = iteration > 0
    before = arrived[iteration[later] - 1, src[later]]
    return float((messages.start_ps[mine][later] < before).mean())


def _times(ends: I64, start: int) -> list[int]:
    times: list[int] = np.diff(ends, prepend=start).tolist()
    return times
