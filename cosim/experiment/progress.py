"""How far something is: what callers are told, and a bar on stderr that shows it."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Self

if TYPE_CHECKING:
    import rich.progress
    from rich.console import Console

PATIENCE_S = 2.0
"""What takes less time than this shows no bar."""
_TOLD_S = 1.0
"""How often a file says it."""
LINE_S = 60.0
"""How often a line is written where the output is no terminal."""


class RunProgress(NamedTuple):
    """``done`` of ``total`` (None: not known) operations of a run, or runs of several; ``text`` says more."""

    done: int
    total: int | None
    text: str


OnProgress = Callable[[RunProgress], object]
"""Called now and then; what it raises ends what is under way, KeyboardInterrupt with what is there."""


@contextmanager
def told_in(folder: Path, progress: OnProgress | None) -> Iterator[OnProgress]:
    """Say it also in a file of a folder that is held, about every second, for who looks on from elsewhere."""
    from cosim.files.folder import PROGRESS_FILE

    file, at = folder / PROGRESS_FILE, 0.0

    def told(info: RunProgress) -> None:
        nonlocal at
        if time.monotonic() - at >= _TOLD_S:
            at = time.monotonic()
            part = file.with_name(f"{file.name}.new")
            with suppress(OSError):  # a run doesn't end for that
                part.write_text(json.dumps(info._asdict()), "utf-8")
                part.replace(file)
            with suppress(OSError):
                part.unlink(missing_ok=True)  # a disk that is full leaves a part of it
        if progress is not None:
            progress(info)

    try:
        yield told
    finally:
        with suppress(OSError):
            file.unlink(missing_ok=True)


class ProgressBar:
    """Pass :meth:`show` to a run, :meth:`count` to a translation; a bar shows after ``patience_s``.

    Where the output is no terminal, a line is written every ``line_s`` instead. Both say how long is left, if
    things go on as they did.
    """

    def __init__(
        self,
        *,
        shown: bool,
        patience_s: float = PATIENCE_S,
        line_s: float = LINE_S,
        console: Console | None = None,
    ) -> None:
        self._shown = shown
        self._console = console
        self._patience_s = patience_s
        self._line_s = line_s
        self._began = self._line_at = time.monotonic()
        self._bar: rich.progress.Progress | None = None
        self._task: rich.progress.TaskID | None = None

    def __enter__(self) -> Self:
        self._began = self._line_at = time.monotonic()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, progress: RunProgress) -> None:
        """Show how far it is."""
        if not self._shown or time.monotonic() - self._began < self._patience_s:
            return
        if not (self._console.is_terminal if self._console is not None else sys.stderr.isatty()):
            self._write_line(progress)
            return
        if self._bar is None:
            self._start()
        assert self._bar is not None
        assert self._task is not None
        self._bar.update(self._task, total=progress.total, completed=progress.done, text=progress.text)

    def count(self, done: int, total: int, what: str) -> None:
        """Show how far something is that is counted; ``total`` 0: not known."""
        self.show(RunProgress(done, total or None, f"{done:,} {what}"))

    def _write_line(self, progress: RunProgress) -> None:
        """A line for a log, if it is time for one."""
        now = time.monotonic()
        if now - self._line_at < self._line_s:
            return
        self._line_at = now
        elapsed = now - self._began
        text = f"{_clock(elapsed)} {progress.text}"
        if progress.total and progress.done:
            left = elapsed * (progress.total - progress.done) / progress.done
            share = f"{progress.done / progress.total:.0%}"
            text = f"{_clock(elapsed)} {share}, {_clock(left)} left: {progress.text}"
        file = self._console.file if self._console is not None else sys.stderr
        print(text, file=file, flush=True)

    def _start(self) -> None:
        from rich import progress as rich_progress
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            TaskProgressColumn,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        self._bar = rich_progress.Progress(
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[text]}"),
            console=self._console or Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task("run", total=None, text="")
        self._bar.start()


def _clock(seconds: float) -> str:
    """``1:02:03``, ``2:03``."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
