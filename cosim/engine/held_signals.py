"""Interrupts wait while something is done that must not stop half way, as rows are written down."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def held_signals() -> Iterator[None]:
    """Signals that Python handles are handled at the end, the last one of them."""
    if threading.current_thread() is not threading.main_thread():  # signals are handled in that one only
        yield
        return
    came: list[tuple[int, FrameType | None]] = []
    before = {number: signal.getsignal(number) for number in _INTERRUPTS}
    ours = [number for number, handler in before.items() if callable(handler)]
    for number in ours:
        signal.signal(number, lambda number, frame: came.append((number, frame)))
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, before[number])
        if came:
            handler = before[signal.Signals(came[-1][0])]
            assert callable(handler)
            handler(*came[-1])
