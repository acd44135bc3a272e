"""A progress bar on stderr, for runs that take longer than a person likes to wait in the dark."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

from cosim.units import format_time

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

    from cosim.engine.replay import ProgressInfo

PATIENCE_S = 2.0
"""Runs shorter than this show no bar."""


class ProgressBar:
    """Pass :meth:`update` to a run, :meth:`count` to a translation; a bar shows after ``patience_s``."""

    def __init__(
        self, *, shown: bool, patience_s: float = PATIENCE_S, console: Console | None = None
    ) -> None:
        self._shown = shown
        self._console = console
        self._patience_s = patience_s
        self._began = time.monotonic()
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        self._began = time.monotonic()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self, info: ProgressInfo) -> None:
        """Show how far the run is: operations that ended, simulated time, messages."""
        said = f"{format_time(info.now_ps)} simulated, {info.messages:,} messages"
        self.show(info.operations_done, info.operations_total, said)

    def count(self, done: int, total: int, what: str) -> None:
        """Show how far something is that is counted; ``total`` 0: not known."""
        self.show(done, total or None, f"{done:,} {what}")

    def show(self, done: int, total: int | None, said: str) -> None:
        """Show that ``done`` of ``total`` (None: not known) are done, and a text beside it."""
        if not self._shown or time.monotonic() - self._began < self._patience_s:
            return
        if self._bar is None:
            self._start()
        assert self._bar is not None
        assert self._task is not None
        self._bar.update(self._task, total=total, completed=done, said=said)

    def _start(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

        self._bar = Progress(
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[said]}"),
            console=self._console or Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task("run", total=None, said="")
        self._bar.start()
