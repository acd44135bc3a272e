"""A progress bar on stderr, for runs that take longer than a person likes to wait in the dark."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

PATIENCE_S = 2.0
"""Runs shorter than this show no bar."""


class ProgressBar:
    """Pass :meth:`update` to a run; a bar shows once the run has taken :data:`PATIENCE_S`."""

    def __init__(self, *, shown: bool) -> None:
        self._shown = shown
        self._began = time.monotonic()
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self, info: Any) -> None:
        """Show the engine's progress."""
