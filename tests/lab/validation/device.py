"""Measured kernels and given plans on the device network: ``python -m tests.lab.validation.device``.

Without arguments: all-reduces of 8 A100s and 8 H100s as MSCCL++ measured its own kernels (all-reduces 6, 5
and 4 of its ``test/mscclpp-test``) and as NCCL was measured below 1 MB, which is a ring of packets (LL) here.
``LAUNCH``, and ``memory_latency`` and ``unit_rate`` of each GPU were fitted to packets and rings of 8. Loads
of many MiB, 4 GPUs, and the H200, which has the H100's numbers here, were not. With plans or folders of them:
each is proved and run, by lines and by messages. ``--rows``: each
row, and which launch and step NCCL's have. ``--gathers``: puts and gets, and how fast they are simulated.
"""

from __future__ import annotations

import csv
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

import cosim
from cosim.errors import InputError
from cosim.pattern.mscclpp.prove import prove_plan
from cosim.pattern.mscclpp.read import read_plan
from tests.inputs import find

LAUNCH = "3.2us"
NVLINK = {"a100": "300GB/s", "h100": "450GB/s"}
RING = f"{{algorithm: ring_packets, blocks: 8, threads: 512, launch: {LAUNCH}}}"
# A thread has one load of 16 bytes in flight.
_KERNELS = {
    "6": (f"{{algorithm: twoshot_packets, blocks: 21, threads: 512, launch: {LAUNCH}}}", ""),
    "5": (f"{{algorithm: twoshot_get, blocks: 24, threads: 1024, launch: {LAUNCH}}}", "outstanding: 128"),
    "4": (
        f"{{algorithm: twoshot_get, blocks: 35, threads: 512, launch: {LAUNCH}}}",
        "outstanding: 64, wavefronts: 16",
    ),
}
_NCCL = {"a100_sxm": "a100", "h100_sxm": "h100", "h200_sxm": "h100"}
_MOST_PACKETS, _LARGE = 100_000, range(16 << 20, 49 << 20)


@dataclass(frozen=True)
class Row:
    """An all-reduce: what took so many microseconds."""

    table: str
    gpu: str
    gpus: int
    size: int
    algorithm: str
    network: str
    measured_us: float

    def ours_us(self) -> float:
        """Simulated."""
        return _took_us(
            f"{{model: device, gpu: {self.gpu}, {self.network}}}", self.gpus, self.size, "all_reduce",
            self.algorithm, NVLINK[self.gpu], "0ns",
        )  # fmt: skip


def _took_us(network: str, gpus: int, size: int, what: str, algorithm: str, rate: str, latency: str) -> float:
    found = cosim.run(
        f"""
topology: {{kind: switch, endpoints: {gpus}, rate: {rate}, latency: {latency}}}
network: {network}
collectives: {{{what}: {algorithm}}}
jobs: [{{workload: {{kind: collective, collective: {what}, ranks: {gpus}, size: {size}B}}}}]
"""
    )
    took = found.summary.jobs[0].iteration_mean_ps
    assert took is not None
    return took / 1e6


def rows() -> Iterator[Row]:
    """MSCCL++'s, then NCCL's."""
    for gpu in NVLINK:
        with find(f"measured/device/mscclpp_{gpu}.csv").open() as file:
            for row in csv.DictReader(file):
                size, kernel = int(row["size"]), row["kernel"]
                within = size < _MOST_PACKETS if kernel == "6" else size in _LARGE
                if row["name"] == "allreduce" and row["ranks"] == "8" and kernel in _KERNELS and within:
                    yield Row(f"MSCCL++, 8 {gpu}", gpu, 8, size, *_KERNELS[kernel], float(row["time"]))
    for name, gpu in _NCCL.items():
        for gpus, size, time_us in _small(name):
            if gpus in (4, 8):
                yield Row(f"NCCL, {gpus} {name[:4]}", gpu, gpus, size, RING, "", time_us)


def _small(name: str) -> Iterator[tuple[int, int, float]]:
    """GPUs, bytes and microseconds of NCCL's all-reduces below 1 MB."""
    with find(f"measured/gpus/{name}_nccl.csv").open() as file:
        for row in csv.DictReader(file):
            size = int(row["elements"]) * (2 if row["dtype"] == "half" else 1)
            if row["collective"] == "all_reduce" and size < 1_000_000:
                yield int(row["gpus"]), size, float(row["time_us"])


def ring_laws() -> Iterator[str]:
    """By the last row of a size: a launch and 2 (n - 1) steps from 4 and 8 GPUs, and what they say of 2."""
    for name in _NCCL:
        times: dict[int, dict[int, float]] = {}
        for gpus, size, time_us in _small(name):
            times.setdefault(size, {})[gpus] = time_us
        for size, by_gpus in sorted(times.items()):
            step = (by_gpus[8] - by_gpus[4]) / 8
            launch = by_gpus[4] - 6 * step
            said = f"2 GPUs {launch + 2 * step:.2f} us, measured {by_gpus[2]}"
            yield f"{name[:4]}, {size:,} bytes: launch {launch:.2f} us, step {step:.2f} us; {said}"


def gathers() -> Iterator[str]:
    """All-gathers of 16 of the paper's GPUs by puts and gets, and how many lines a second that is."""
    for size in (16 << 10, 256 << 10, 1 << 20, 4 << 20):
        for access, arbitration in product(("put", "get"), ("fair", "fcfs")):
            network = f"{{model: device, access: {access}, arbitration: {arbitration}}}"
            began = time.process_time()
            took = _took_us(network, 16, size, "all_gather", "direct", "1024GiB/s", "1us")
            cpu = time.process_time() - began
            yield (
                f"{size >> 10} KiB each, {access}, {arbitration}: {took:.2f} us, "
                f"{16 * 15 * size / 128 / cpu / 1e6:.1f} M lines a CPU-second, {cpu:.1f} CPU-s"
            )


def prove_and_run(path: Path) -> str:
    """``proved`` with both times of 1 MiB, or what the plan was refused for."""
    try:
        plan = read_plan(path)
        prove_plan(plan)
        what, gpus = plan.collective.value, len(plan.gpus)
        algorithm = f"{{algorithm: mscclpp, path: {path.resolve()}}}"
        took = [
            _took_us(network, gpus, 1 << 20, what, algorithm, "900GB/s", "500ns")
            for network in ("{model: device}", "fair_share")
        ]
    except InputError as error:
        return f"refused: {error}"
    return f"proved: {what} over {gpus} GPUs, {took[0]:.2f} us by lines, {took[1]:.2f} us by messages"


def main(arguments: list[str]) -> None:
    """Print the tables."""
    given = [Path(one) for one in arguments if not one.startswith("--")]
    if given:
        paths = [path for one in given for path in (sorted(one.glob("*.json")) if one.is_dir() else [one])]
        said = {path: prove_and_run(path) for path in paths}
        for path, each in said.items():
            print(f"{path.stem}: {each}")
        print(dict(Counter(each.split(":")[0] for each in said.values())))
        return
    if "--gathers" in arguments:
        for line in gathers():
            print(line, flush=True)
        return
    if "--rows" in arguments:
        print(*ring_laws(), sep="\n")
    errors: dict[str, list[float]] = {}
    for row in rows():
        ours = row.ours_us()
        errors.setdefault(row.table, []).append(ours / row.measured_us - 1)
        if "--rows" in arguments:
            print(f"{row.table}, {row.size:,} bytes: {ours:.2f} us, measured {row.measured_us}")
    for table, its in errors.items():
        worst = max(its, key=abs)
        print(f"{table}: {len(its)} rows, mean error {np.abs(its).mean():.1%}, worst {worst:+.1%}")


if __name__ == "__main__":
    main(sys.argv[1:])
