"""One rank of a script: ``python -m cosim.profiler.inside ORDER``, or a fork of ``--serve``.

ORDER is a JSON file (see :class:`cosim.profiler.launch.Request`); the answer goes beside it.
``--serve`` imports torch, then forks for each line of its input, ``{number, order, log, folder}``, and says
``number code`` when that has ended.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
from pathlib import Path
from typing import Any

from cosim.profiler.inside import left_behind


def main() -> None:
    """Run and write the answer; leave without the interpreter's farewell, which fake streams don't
    survive.
    """
    if sys.argv[1] == "--serve":
        serve()
    carry_out(Path(sys.argv[1]))


def carry_out(order_file: Path) -> None:
    """One order, and the end of this process and of all that the script has started."""
    left_behind.adopt()
    order = json.loads(order_file.read_text())
    own = os.getpid()
    try:
        answer = _answer(order)
        if os.getpid() != own:  # a fork of the script's
            os._exit(0)
        order_file.with_suffix(".answer").write_text(json.dumps(answer))
    finally:
        if os.getpid() == own:  # nobody need wait for word from here
            (Path(order["shared"]) / f"ended-{order['rank']}").touch()
            left_behind.end()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _answer(order: dict[str, Any]) -> dict[str, Any]:
    """What the script did, and where that is asked, what it read."""
    from cosim.profiler.inside.session import ProfilingSession

    if not order.get("note_reads"):
        return ProfilingSession(order).run_script()
    from cosim.files.reads import reading
    from cosim.profiler.inside import environment

    with reading() as reads, environment.noted(reads, order):
        reads.script = True
        answer = ProfilingSession(order).run_script()
    modules = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    reads.opened.update(place for place in modules if place)  # of those that were compiled before, too
    own = Path(order["shared"]).parent.resolve()
    read = reads.states(Path(order["folder"]))
    read = {path: state for path, state in read.items() if not _below(path, own)}
    return {**answer, "read": read, "unclear": reads.unclear}


def _below(path: str, folder: Path) -> bool:
    return Path(path).is_relative_to(folder)


def serve() -> None:
    """Fork for each job, until the input ends; then end the forks too."""
    from cosim.profiler.inside.session import preload, preload_inductor

    left_behind.adopt()
    interrupts = signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever asked says when to end
    preload()
    jobs: dict[int, int] = {}
    wake, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    left = b""
    while True:
        ready, _, _ = select.select([0, wake], [], [])
        if wake in ready:
            os.read(wake, 4096)
            ended = _ended(jobs)
            left_behind.end(besides=jobs)  # of ranks that were killed; the living have their own
            for process in ended:
                print(*process, flush=True)
        if 0 in ready:
            read = os.read(0, 65536)
            if not read:
                break
            *lines, left = (left + read).split(b"\n")
            for line in lines:
                job = json.loads(line)
                if json.loads(Path(job["order"]).read_text())["inductor"]:
                    preload_inductor()
                child = os.fork()
                if child == 0:
                    signal.signal(signal.SIGINT, interrupts)
                    _be(job)
                jobs[child] = job["number"]
    left_behind.end()
    os._exit(0)


def _ended(jobs: dict[int, int]) -> list[tuple[int, int]]:
    found = []
    while True:
        try:
            child, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            break
        if child == 0:
            break
        if child in jobs:
            found.append((jobs.pop(child), os.waitstatus_to_exitcode(status)))
    return found


def _be(job: dict[str, str]) -> None:
    """In the fork: what the job's own process would be."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    log = os.open(job["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.chdir(job["folder"])
    try:
        carry_out(Path(job["order"]))
    except BaseException:
        sys.excepthook(*sys.exc_info())
        sys.stderr.flush()
    os._exit(1)


main()
