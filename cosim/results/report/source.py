"""A run as the report sees it: summary, settings, columns, whether it lies in memory or in a folder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cosim.engine.records import MessageRecords
from cosim.results.spread import sent_over
from cosim.results.store import run_columns
from cosim.results.stored_run import StoredRun
from cosim.results.summary import Summary

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cosim.engine.records import Records

I64 = NDArray[np.int64]


class RunInMemory(Protocol):
    """What is needed of :class:`cosim.Run`."""

    @property
    def records(self) -> Records:
        """What the engine wrote down."""

    @property
    def summary(self) -> Summary:
        """What came of it."""

    @property
    def settings(self) -> Any:
        """The scenario as plain values; None where it isn't known."""

    @property
    def alone(self) -> Mapping[str, float] | None:
        """Each job's mean iteration by itself, picoseconds; None where nobody asked."""


@dataclass(frozen=True, eq=False)
class ReportSource:
    """``columns`` are those of ``columns.npz``; ``settings`` None where a run has no scenario; ``alone`` is
    each job's mean iteration by itself, where that was asked for.
    """

    summary: Summary
    settings: Any
    columns: Mapping[str, NDArray[Any]]
    messages: MessageRecords | None
    alone: Mapping[str, float] | None = None

    def job_of_ranks(self) -> I64:
        """The job of each simulated rank."""
        return np.repeat(np.arange(len(self.summary.jobs)), np.diff(self.columns["job_ptr"]))

    def rank_numbers(self) -> I64:
        """What each simulated rank is called in its job."""
        found = self.columns.get("job_rank_numbers")
        if found is not None:
            return np.asarray(found, np.int64)
        ptr = self.columns["job_ptr"]
        return np.asarray(np.arange(ptr[-1]) - np.repeat(ptr[:-1], np.diff(ptr)), np.int64)

    def iterations(self, job: int) -> I64:
        """When each iteration of a job began and ended: int64[iterations + 1]."""
        ptr, ends = self.columns["iteration_ptr"], self.columns["iteration_end_ps"]
        ranks = int(np.diff(self.columns["job_ptr"])[job])
        mine = ends[ptr[job] : ptr[job + 1]].reshape(-1, max(ranks, 1)).max(axis=1)
        return np.concatenate([[self.summary.jobs[job].start_ps], mine]).astype(np.int64)

    def reached(self, arrived: I64) -> I64:
        """Bytes of each row that links brought to endpoints in each bin of the traffic, of those that
        arrived whole then: int64[rows, bins].
        """
        found = self.columns
        edges = np.arange(arrived.shape[1] + 1, dtype=np.int64) * int(found["traffic_bin_ps"])
        last = found["link_dst"] < self.summary.num_endpoints
        busy, rate = found["link_busy_ps"][:, last], found["link_rate_bps"][last]
        return sent_over(arrived, busy, int(found["link_bin_ps"]), rate, edges, self.summary.end_ps)


def source_of(run: RunInMemory | StoredRun) -> ReportSource:
    """The source of a run in memory, or read back."""
    if isinstance(run, StoredRun):
        return ReportSource(run.summary, run.settings, run.columns, run.message_records)
    return ReportSource(run.summary, run.settings, run_columns(run.records), run.records.messages, run.alone)
