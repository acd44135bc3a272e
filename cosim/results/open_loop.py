"""Closed loop against open loop: times of iterations and of messages, job by job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.engine.records import MessageRecords, Records
from cosim.results.summary import iteration_ends

I64 = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class JobLoops:
    """One job: times of its iterations, and of its messages.

    ``recorded_ps``, ``closed_ps``, ``open_ps`` are times of the iterations that all three have. ``early`` is
    the share of messages (of iterations after the first) that the open loop sent before all of the iteration
    before had arrived at their sender: none in a closed loop. ``fct_*``
    are message times in the closed and in the open loop.
    """

    name: str
    recorded_ps: tuple[int, ...]
    closed_ps: tuple[int, ...]
    open_ps: tuple[int, ...]
    early: float
    fct_closed_ps: I64
    fct_open_ps: I64


@dataclass(frozen=True, eq=False)
class LoopComparison:
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
                        f"fct_{loop}_{name}_ps": exact_percentile_ps(getattr(job, f"fct_{loop}_ps"), part)
                        for loop in ("closed", "open")
                        for name, part in (("p50", 0.5), ("p99", 0.99), ("max", 1.0))
                    },
                }
                for job in self.jobs
            ],
        }

    def __str__(self) -> str:
        from cosim.results.render.loop_page import loop_page
        from cosim.results.render.text import text

        return text(loop_page(self))


def exact_percentile_ps(fct_ps: I64, part: float) -> int | None:
    """Of sorted times; None of none."""
    return int(fct_ps[min(len(fct_ps) - 1, int(part * len(fct_ps)))]) if len(fct_ps) else None


def compare_job(closed: Records, recorded: Records, ends: I64, number: int) -> JobLoops:
    """One job of both loops.

    Parameters
    ----------
    closed, recorded
        The run itself, and the one whose messages were replayed; both with messages.
    ends
        int64[messages of ``recorded``]: when each arrived in the open loop, picoseconds.
    number
        Of the job.
    """
    messages, own = recorded.messages, closed.messages
    assert messages is not None
    assert own is not None
    start = recorded.jobs[number].start_ps
    recorded_end = iteration_ends(recorded.iteration_end_ps[number])
    closed_end = iteration_ends(closed.iteration_end_ps[number])
    count = min(len(recorded_end), len(closed_end))
    mine = messages.job == number
    open_end = np.empty(count, np.int64)
    for k in range(count):
        of_it = mine & (messages.iteration == k)
        if not of_it.any():
            open_end[k] = recorded_end[k]
            continue
        # What follows the last arrival (an optimizer's step) follows it here too, and takes as long.
        tail = recorded_end[k] - messages.end_ps[of_it].max()
        open_end[k] = max(int(recorded_end[k]), int(ends[of_it].max() + tail))
    open_end = np.maximum.accumulate(open_end) if count else open_end
    ours = own.job == number
    return JobLoops(
        closed.jobs[number].name,
        _times(recorded_end[:count], start),
        _times(closed_end[:count], start),
        _times(open_end, start),
        _early(messages, mine, ends),
        np.sort(own.end_ps[ours] - own.start_ps[ours]),
        np.sort(ends[mine] - messages.start_ps[mine]),
    )


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


def _times(ends: I64, start: int) -> tuple[int, ...]:
    return tuple(np.diff(ends, prepend=start).tolist())
