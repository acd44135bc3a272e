"""Scripts that start their own ranks, with ``torch.multiprocessing.spawn``: this rank's share is run, here.

Processes started otherwise are left alone, and what they train is not seen: a script that never steps an
optimizer itself is told so.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from multiprocessing import process
from types import SimpleNamespace
from typing import Any

started: list[str] = []
"""Names of the processes that the script has started."""
_unnoted: list[Any] = []


@contextlib.contextmanager
def unnoted() -> Iterator[None]:
    """A fork in here is not the script's."""
    _unnoted.append(None)
    try:
        yield
    finally:
        _unnoted.pop()


def install(local_rank: int) -> None:
    """``spawn`` calls its function with the place of this rank on its node."""
    import torch.multiprocessing as mp

    def start_processes(
        fn: Callable[..., Any], args: Any = (), nprocs: int = 1, join: bool = True, *_: Any, **__: Any
    ) -> Any:
        fn(local_rank % nprocs, *args)
        return None if join else SimpleNamespace(join=lambda *_, **__: True, processes=[], pids=list)

    for name in ("spawn", "start_processes"):
        setattr(mp, name, start_processes)
        setattr(sys.modules["torch.multiprocessing.spawn"], name, start_processes)
    os.register_at_fork(before=lambda: None if _unnoted else started.append("fork"))
    start = process.BaseProcess.start

    def noted(self: Any) -> None:
        started.append(self.name)
        with unnoted():  # its name is
            start(self)

    process.BaseProcess.start = noted  # type: ignore[method-assign]
