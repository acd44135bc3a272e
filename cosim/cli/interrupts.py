"""Signals that end a command, and keep what was computed.

Python says of an exception in a finalizer, in a weak reference's callback or in one that C calls, "Exception
ignored in ...", and goes on. An interrupt that comes just there would be lost: it is sent again.
"""

from __future__ import annotations

import _thread
import inspect
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

from cosim.cli.say import say

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

_AGAIN_S = 0.01
"""What dropped an interrupt is over by then; where it isn't, it is sent once more."""


def is_of_an_interrupt(error: BaseException | None) -> bool:
    """Whether an error is the end of what was interrupted, and nobody on the way had anything to keep."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def say_sudden_end() -> None:
    """Have ``os._exit`` in this process say who called it, and never look like success.

    What ends a process from C, or has the function from elsewhere, is not seen.
    """
    end, own = os._exit, os.getpid()

    def told(status: int) -> NoReturn:
        if os.getpid() == own:  # what is forked ends so, as it should
            frame = inspect.currentframe()
            caller = frame.f_back if frame is not None else None
            where = "" if caller is None else f"{caller.f_code.co_filename}:{caller.f_lineno}: "
            say(f"error: {where}calls os._exit({status}), which ended cosim; nothing more is written")
            status = status or 1
        end(status)

    os._exit = told


def keep_when_ended() -> None:
    """Have SIGTERM, and a terminal that closes, keep what Ctrl-C keeps; a server has a way of its own. From
    the main thread; in another one nothing is changed.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    latest: int = signal.SIGINT
    main_thread, own = threading.get_ident(), os.getpid()
    show = sys.unraisablehook

    def interrupt(number: int, _: object) -> None:
        nonlocal latest
        if os.getpid() != own:  # what a plug-in forked ends as it would alone: it has nothing to keep
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        latest = number
        raise KeyboardInterrupt

    def send_again() -> None:
        time.sleep(_AGAIN_S)
        signal.pthread_kill(main_thread, latest)

    def dropped(what: UnraisableHookArgs) -> None:
        if not issubclass(what.exc_type, KeyboardInterrupt) or os.getpid() != own:
            show(what)
            return
        # No lock is taken: who was interrupted may hold any. At the very end there are no more threads.
        with suppress(RuntimeError):
            _thread.start_new_thread(send_again, ())

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, interrupt)
    sys.unraisablehook = dropped
