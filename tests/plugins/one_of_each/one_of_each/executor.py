"""Runs beside the process that asks."""

from collections.abc import Iterator, Sequence

from pydantic import Field

from cosim.plugins import Executor, RunCall, RunResult


class Backwards(Executor):
    """One run after another, the last first"""

    skip: int = Field(0, ge=0, description="runs at the end that are lost the first time")

    def run(self, calls: Sequence[RunCall]) -> Iterator[tuple[int, RunResult]]:
        for number in reversed(range(max(1, len(calls) - self.skip))):
            yield number, calls[number]()
