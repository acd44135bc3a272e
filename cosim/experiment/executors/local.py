"""Processes of this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

from pydantic import Field

from cosim.experiment.executors.call import RunCall, RunResult
from cosim.experiment.executors.contract import Executor
from cosim.experiment.executors.worker import WorkerGroup


class LocalExecutor(Executor):
    """Processes of this machine: as many runs at a time as it has cores"""

    workers: int | None = Field(None, ge=1, description="runs at a time; omitted: as many as cores")

    def run(self, calls: Sequence[RunCall]) -> Iterator[tuple[int, RunResult]]:
        """See :class:`Executor`. One at a time without limits needs no other process. Of several, the first
        is run alone: what it compiles, the others find on disk.
        """
        workers = self.workers or num_cores()
        if workers == 1 and self.timeout is None and self.memory is None:
            for number, call in enumerate(calls):
                yield number, call.here()
            return
        group = WorkerGroup()
        pool = ThreadPoolExecutor(min(workers, len(calls)), initializer=group.join)
        try:
            yield 0, pool.submit(calls[0]).result()
            futures = {pool.submit(call): number for number, call in enumerate(calls[1:], 1)}
            for future in as_completed(futures):
                yield futures[future], future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            group.end()


def num_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
