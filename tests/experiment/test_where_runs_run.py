"""A run in a spawned process, in a thread, inside an event loop as in a notebook, in a subinterpreter."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import cosim
from cosim.engine import replay
from cosim.experiment.progress import RunProgress
from tests.cli.processes import PATIENCE_S

SHORT = """
topology: {kind: ring, endpoints: 4, rate: 80Gbps, latency: 0ns}
network: fair_share
jobs: [{workload: {kind: collective, collective: all_reduce, ranks: 4, size: 4MB}}]
"""
LONG = {"jobs[0].iterations": 20_000, "record.messages": False}
SERVED = {"network": {"command": [sys.executable, "-P", "-m", "cosim", "serve", "--network", "fair_share"]}}


def digest(changes: Mapping[str, Any] = {}) -> str:
    return cosim.run(SHORT, changes).digest


@pytest.fixture
def _interrupts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Ctrl-C as a terminal has it, and progress told as often as it may be."""
    monkeypatch.setattr(replay, "_PROGRESS_S", 0.0)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def ctrl_c_once() -> Callable[[RunProgress], None]:
    """Progress that has the terminal's signal come when a part is done."""
    sent = threading.Event()

    def tell(info: RunProgress) -> None:
        if info.done and not sent.is_set():
            sent.set()
            os.kill(os.getpid(), signal.SIGINT)

    return tell


def test_a_spawned_process_gives_the_same_digest() -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(digest, [{}, SERVED], chunksize=2) == [digest()] * 2


def test_a_thread_and_an_event_loop_give_the_same_digest() -> None:
    async def notebook() -> list[str]:
        beside = [asyncio.to_thread(digest) for _ in range(2)]
        return [digest(), digest(SERVED), *await asyncio.gather(*beside)]

    assert asyncio.run(notebook()) == [digest()] * 4


@pytest.mark.usefixtures("_interrupts")
def test_ctrl_c_in_a_notebooks_cell_keeps_what_was_computed() -> None:
    async def cell() -> cosim.Run:
        return cosim.run(SHORT, LONG, progress=ctrl_c_once())

    loop = asyncio.new_event_loop()  # a notebook's loop leaves the signal to Python, asyncio.run does not
    try:
        part = loop.run_until_complete(cell())
    finally:
        loop.close()
    assert part.interrupted.startswith("interrupted at ")
    assert len(part.summary.jobs[0].iteration_ps) < 20_000


@pytest.mark.usefixtures("_interrupts")
def test_ctrl_c_reaches_a_run_in_a_thread_through_its_progress() -> None:
    """Python raises it in the main thread alone."""
    stop, send = threading.Event(), ctrl_c_once()

    def tell(info: RunProgress) -> None:
        send(info)
        if info.done:
            assert stop.wait(PATIENCE_S)
            raise KeyboardInterrupt

    with ThreadPoolExecutor(1) as threads:
        found = threads.submit(cosim.run, SHORT, LONG, progress=tell)
        with pytest.raises(KeyboardInterrupt):
            found.result(PATIENCE_S)
        assert found.running()
        stop.set()
        part = found.result(PATIENCE_S)
    assert part.interrupted.startswith("interrupted at ")
    assert len(part.summary.jobs[0].iteration_ps) < 20_000


@pytest.mark.parametrize(("before", "ends"), [("", ""), ("import cosim, pydantic", "subinterpreters")])
def test_a_subinterpreter_runs_where_nothing_else_has_pydantic(before: str, ends: str) -> None:
    """Pydantic's core is loaded once in a process, and says so in a line."""
    pytest.importorskip("_xxsubinterpreters")
    script = f"""
import _xxsubinterpreters
SHORT = {SHORT!r}
{before}
_xxsubinterpreters.run_string(_xxsubinterpreters.create(), f'''
import cosim
print(cosim.run({{SHORT!r}}).digest)
''')"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, check=False
    )
    assert (done.returncode == 0) == (not ends)
    if ends:
        assert ends in done.stderr.splitlines()[-1]
    else:
        assert done.stdout.strip() == digest()
