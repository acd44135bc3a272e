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

_ENDS = signal.SIGTERM, signal.SIGHUP
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
    main_thread = threading.get_ident()
    show = sys.unraisablehook

    def interrupt(number: int, _: object) -> None:
        nonlocal latest
        latest = number
        raise KeyboardInterrupt

    def send_again() -> None:
        time.sleep(_AGAIN_S)
        signal.pthread_kill(main_thread, latest)

    def dropped(what: UnraisableHookArgs) -> None:
        if not issubclass(what.exc_type, KeyboardInterrupt):
            show(what)
            return
        # No lock is taken: who was interrupted may hold any. At the very end there are no more threads.
        with suppress(RuntimeError):
            _thread.start_new_thread(send_again, ())

    ours = [number for number in _ENDS if signal.getsignal(number) is signal.SIG_DFL]
    for number in ours:
        signal.signal(number, interrupt)
    sys.unraisablehook = dropped
    _end_forked_as_without(ours)


def _end_forked_as_without(signals: list[signal.Signals]) -> None:
    """Have these signals end what a plug-in forks: it has nothing to keep, and would go up through the calls
    that its parent is in.

    They are blocked from before the fork on, as Python forgets those that come before the child's first line.
    """
    known = threading.local()  # two threads may fork

    def hold() -> None:
        known.mask = signal.pthread_sigmask(signal.SIG_BLOCK, signals)

    def let_go() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, known.mask)

    def end() -> None:
        for number in signals:
            signal.signal(number, signal.SIG_DFL)
        let_go()

    os.register_at_fork(before=hold, after_in_parent=let_go, after_in_child=end)
