"""When the tokens of a request come: the first one, and each further one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosim.engine.records import Records
from cosim.workload.program import PREFILL, Workload


@dataclass(frozen=True)
class RequestSummary:
    """A job whose iteration answers a request.

    Attributes
    ----------
    sequences, tokens
        That it answers at once, and their tokens in all.
    first_token_ps
        From the iteration's beginning until the last rank ended its prefill; mean over iterations.
    further_token_ps
        What each further token of the longest answer takes; None: there is none.
    tokens_per_s
        Of all sequences together, the prefill's time included.
    """

    sequences: int
    tokens: int
    first_token_ps: int
    further_token_ps: int | None
    tokens_per_s: float


def summarize_request(records: Records, j: int, mean_ps: int | None) -> RequestSummary | None:
    """The request of job ``j``, whose mean iteration takes ``mean_ps``; None where it answers nothing."""
    job = records.jobs[j]
    request = job.workload.request
    if request is None or not mean_ps:
        return None
    first = _first_tokens(records, j)
    if not len(first):
        return None
    first_ps = round(first.mean())
    further = request.longest - 1
    return RequestSummary(
        request.sequences,
        request.tokens,
        first_ps,
        round((mean_ps - first_ps) / further) if further else None,
        request.tokens / (mean_ps / 1e12),
    )


def _first_tokens(records: Records, j: int) -> NDArray[np.int64]:
    """When each iteration's prefill had ended on all ranks, after the iteration began: int64[iterations]."""
    job, ops = records.jobs[j], records.ops
    mine = np.flatnonzero(ops.job == j)
    first = job.workload.table.first[job.workload.program_of[ops.rank[mine]]]
    mine = mine[_is_prefill(job.workload)[first + ops.op[mine]]]
    ends = records.iteration_end_ps[j].max(axis=1, initial=job.start_ps)
    found = np.zeros(len(ends), np.int64)
    done = mine[ops.iteration[mine] < len(ends)]
    np.maximum.at(found, ops.iteration[done], ops.end_ps[done])
    return found - np.concatenate([[job.start_ps], ends[:-1]]) if len(done) else found[:0]


def _is_prefill(workload: Workload) -> NDArray[np.bool_]:
    """Whether each row of the workload's table is prefill: bool[rows]."""
    return np.array([o.phase == PREFILL for p in workload.programs for o in p.operations], np.bool_)
