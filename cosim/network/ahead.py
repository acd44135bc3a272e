"""One loop compiled in a second process while this one compiles another: they meet in numba's cache on disk.

Where nothing is in the cache yet, a run needs the network's loop and the engine's, and neither needs the
other. The second process only fills the cache. If it fails, or can't write there, the loop is compiled here,
as it would have been. It ends with the ``with`` block that it was started for, and when this process ends,
whatever the reason: its standard input closes.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import IO, Any

from cosim.network.jit import compiled_for, is_missing
from cosim.same_python import same_python

_CHILD = "from cosim.network.ahead import compile_one; compile_one()"
_PATIENCE_S = 60.0


@contextmanager
def compiling(function: Callable[..., Any], signature: Any) -> Iterator[None]:
    """Have ``function`` compiled by another process meanwhile, unless it is cached or there is one core.

    Leaves when that process has ended; an error inside ends it at once.
    """
    if _num_cores() < 2 or not is_missing(function, signature):
        yield
        return
    process = subprocess.Popen(
        same_python(_CHILD),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdin is not None
    try:
        _tell(process.stdin, (function.__module__, function.__name__, signature))
        yield
        with suppress(subprocess.TimeoutExpired):
            process.wait(_PATIENCE_S)
    finally:
        process.kill()
        process.wait()
        process.stdin.close()


def _tell(pipe: IO[bytes], what: Any) -> None:
    with suppress(OSError):  # it is gone: compiled here, then
        pickle.dump(what, pipe)
        pipe.flush()


def _num_cores() -> int:
    own = getattr(os, "sched_getaffinity", None)  # Linux knows which this process may use
    return len(own(0)) if own else os.cpu_count() or 1


def compile_one() -> None:
    """What the second process does: read (module, name, signature), compile it into the cache, end."""
    module, name, signature = pickle.load(sys.stdin.buffer)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    compiled_for(getattr(import_module(module), name), signature)


def _end_with_parent() -> None:
    while os.read(0, 1):
        pass
    os._exit(1)
