"""When tokens come, of a job that answers: by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import cosim
from cosim.results.measures import MEASURES
from cosim.workload.program import RequestWork

MS = 10**9


def answering(request: RequestWork | None, prefills: tuple[int, ...] = (10,)) -> cosim.Run:
    """Each rank prefills and then decodes four times for 2 ms; two iterations."""
    programs: list[cosim.Program] = []
    for prefill in prefills:
        steps = [cosim.Operation("first", cosim.OpKind.COMPUTE, duration_ps=prefill * MS, phase="prefill")]
        steps += [
            cosim.Operation(
                f"step {number}", cosim.OpKind.COMPUTE, deps=(number,), duration_ps=2 * MS, phase="decode"
            )
            for number in range(4)
        ]
        programs.append(cosim.Program(f"rank {len(programs)}", tuple(steps)))
    ranks = len(prefills)
    mesh = cosim.DeviceMesh({"tp": ranks})
    work = cosim.Workload("answers", mesh, tuple(programs), np.arange(ranks, dtype=np.int32), request=request)
    switch = {"kind": "switch", "endpoints": ranks, "rate": "400Gbps", "latency": "1us"}
    return cosim.run(
        {"topology": switch, "network": "fair_share", "jobs": [{"workload": work, "iterations": 2}]}
    )


def test_the_first_token_and_each_further_one() -> None:
    run = answering(RequestWork(sequences=3, tokens=12, longest=5))
    request = run.summary.jobs[0].request
    assert request is not None
    assert (request.first_token_ps, request.further_token_ps) == (10 * MS, 2 * MS)
    assert request.tokens_per_s == pytest.approx(12 / 0.018)
    said = "first token after 10 ms, a further one every 2 ms; 12 tokens of 3 sequences: 666.7 tokens/s"
    assert said in str(run.summary)


def test_the_slowest_rank_has_the_first_token() -> None:
    request = answering(RequestWork(1, 5, 5), prefills=(10, 14)).summary.jobs[0].request
    assert request is not None
    assert request.first_token_ps >= 14 * MS


def test_a_single_token_has_no_further_one() -> None:
    run = answering(RequestWork(2, 2, 1))
    assert run.summary.jobs[0].request is not None
    assert run.summary.jobs[0].request.further_token_ps is None
    with pytest.raises(cosim.InputError, match="no job has a further_token"):
        MEASURES["further_token"].of(run.summary, {})
    assert MEASURES["first_token"].of(run.summary, {}) == 10 * MS


def test_a_job_that_trains_answers_nothing() -> None:
    run = answering(None)
    assert run.summary.jobs[0].request is None
    with pytest.raises(cosim.InputError, match="no job has"):
        MEASURES["tokens_per_s"].of(run.summary, {})


def test_a_summary_comes_back_with_its_request() -> None:
    summary = answering(RequestWork(3, 12, 5)).summary
    assert cosim.Summary.from_json(summary.to_json()) == replace(summary)
