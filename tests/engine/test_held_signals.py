"""Signals that come while something must not stop half way."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from cosim.engine.engine import held_signals


@pytest.fixture
def handler() -> Iterator[Any]:
    """What is run in the background may have been told to ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_waits_until_what_is_held_is_over(handler: Any) -> None:
    done: list[str] = []
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012 - where it comes is the point
        with held_signals():
            with held_signals():
                os.kill(os.getpid(), signal.SIGINT)
                done.append("inside")
            done.append("between")
        done.append("behind")
    assert done == ["inside", "between"]
    assert signal.getsignal(signal.SIGINT) is handler


def test_without_signals_and_in_other_threads_nothing_happens() -> None:
    done: list[str] = []

    def work() -> None:
        with held_signals():
            done.append("other")

    with held_signals():
        done.append("main")
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == ["main", "other"]
