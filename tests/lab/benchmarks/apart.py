"""What a second core would save in a run of two jobs apart: ``python -m tests.lab.benchmarks.apart``.

Two equal jobs in halves of a leaf-spine, whose links they don't share, together and each alone. ``loop`` is
the kernel's time, the only part that could leave Python's lock; ``bound`` is what a run would take with both
jobs' loops side by side and nothing for putting their rows in order, by what it takes. The last line
is half of a round trip between two threads, by locks: within one job parts would meet at about each message.
"""

from __future__ import annotations

import threading
import time
from typing import Any

from cosim.experiment.build import build
from cosim.experiment.scenario import loads
from cosim.experiment.simulate import simulate
from cosim.kernel import kernel

FABRIC = """
topology: {{kind: leaf_spine, leaves: 16, spines: 8, endpoints_per_leaf: 16, rate: 100Gbps, latency: 1us}}
network: {network}
jobs:
"""
ALL_TO_ALL = "{kind: collective, collective: all_to_all, size: 64MB, ranks: 64}"
FSDP = (
    "{kind: model, model: {kind: llama3-8b, sequence: 8192}, gpu: h100-sxm, memory: ignore, recompute: none, "
    "micro_batch: 2, batch: 128, parallel: {fsdp: 64}}"
)
ROWS = (
    ("all-to-all, 64 ranks each, fair_share", "fair_share", ALL_TO_ALL),
    ("all-to-all, 64 ranks each, DCTCP", "{model: congestion, control: dctcp}", ALL_TO_ALL),
    ("FSDP Llama 3 8B, 64 ranks each, fair_share", "fair_share", FSDP),
)


def seconds(network: str, workload: str, firsts: tuple[int, ...]) -> tuple[float, float, int]:
    """CPU seconds of a simulation, those in the loop, and messages; jobs begin at these endpoints."""
    text = FABRIC.format(network=network)
    for first in firsts:
        place = f"{{kind: explicit, endpoints: {[*range(first, first + 64)]}}}"
        text += f"  - {{name: at{first}, workload: {workload}, placement: {place}}}\n"
    inside, run = 0.0, kernel.run_engine

    def timed(*given: Any) -> Any:
        nonlocal inside
        began = time.thread_time()
        try:
            return run(*given)
        finally:
            inside += time.thread_time() - began

    scenario = loads(text)
    built = build(scenario)
    vars(kernel)["run_engine"] = timed
    try:
        began = time.process_time()
        done = simulate(scenario, built)
        return time.process_time() - began, inside, done.records.num_messages
    finally:
        vars(kernel)["run_engine"] = run


def hand_over_us(count: int = 20_000) -> float:
    """Microseconds from one thread to another, by locks."""
    here, there = threading.Lock(), threading.Lock()
    here.acquire()
    there.acquire()

    def answer() -> None:
        for _ in range(count):
            there.acquire()
            here.release()

    other = threading.Thread(target=answer)
    other.start()
    began = time.perf_counter()
    for _ in range(count):
        there.release()
        here.acquire()
    took = time.perf_counter() - began
    other.join()
    return took / count / 2 * 1e6


def main() -> None:
    """Print a line for each row."""
    for name, network, workload in ROWS:
        both, loop, messages = seconds(network, workload, (0, 128))
        parts = [seconds(network, workload, (first,)) for first in (0, 128)]
        bound = both - loop + max(part for _, part, _ in parts)
        print(
            f"{name:<44} {messages:>9,} messages: {both:6.2f} s, loop {loop:6.2f} s "
            f"({loop / both:4.0%}); alone {' and '.join(f'{one:.2f}' for one, _, _ in parts)} s; "
            f"bound {both / bound:4.2f} times; {loop / messages * 1e6:.2f} us a message",
            flush=True,
        )
    print(f"from one thread to another: {hand_over_us():.1f} us")


if __name__ == "__main__":
    main()
