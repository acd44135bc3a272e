"""Runs in processes of this machine, by a pool of threads."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

from pydantic import Field

from cosim.plugins import Executor, RunCall, RunResult


class Threads(Executor):
    """Processes of this machine, a thread for each"""

    threads: int = Field(2, ge=1, description="runs at a time")

    def run(self, calls: Sequence[RunCall]) -> Iterator[tuple[int, RunResult]]:
        with ThreadPoolExecutor(self.threads) as pool:
            futures = {pool.submit(call): number for number, call in enumerate(calls)}
            for future in as_completed(futures):
                yield futures[future], future.result()
