"""MSCCL's production algorithms timed beside our own: ``python -m tests.lab.benchmarks.msccl [FOLDER]``.

Each file of the folder (left out: ``msccl``, as ``tests/inputs.py`` finds it) runs at a size in the middle of
what its ``minBytes`` and ``maxBytes`` say, on the GPUs that it is for: ndv4 files on 8 A100s at one NVSwitch
of 240 GB/s a GPU (NCCL's figure for twelve NVLinks) and 700 ns a link, ncv4 files on 4 GPUs at one switch of
24 GB/s a GPU (PCI 4.0 x16) and 1 us. Beside it, at the same size and network: the flags of the file's
protocol counted, and ring and direct of our own. ``bound`` is bytes over bandwidth: what a rank must send or
take in, at its link's rate, plus one message over two links. Simulated times don't depend on the machine.
"""

from __future__ import annotations

import sys
import time
from fractions import Fraction
from pathlib import Path

import cosim
from cosim.formats.msccl.program import MscclProgram
from cosim.formats.msccl.prove import prove_program
from cosim.formats.msccl.read import read_program
from cosim.pattern.template import Collective
from cosim.units import format_size, format_time
from tests.inputs import find

FOLDER = find("msccl")
NVSWITCH = ("240GB/s", "700ns", 240 * 8e9, 700_000)
PCI = ("24GB/s", "1us", 24 * 8e9, 1_000_000)


def size_of(program: MscclProgram) -> int:
    """A multiple of the chunks in the middle of the file's range, per rank as our engine counts."""
    known = dict(program.extra)
    least, most = int(known.get("minBytes", 1 << 20)), int(known.get("maxBytes", 1 << 20))
    n = len(program.gpus)
    whole = max(1, (least + most) // 2 // (program.num_chunks * n)) * program.num_chunks * n
    return whole // n if program.collective is Collective.ALL_GATHER else whole


def bound_ps(program: MscclProgram, size: int, rate_bps: float, latency_ps: int) -> int:
    """Bytes over bandwidth, and two links' latency."""
    n = len(program.gpus)
    most = {
        Collective.ALL_REDUCE: Fraction(2 * size * (n - 1), n),
        Collective.ALL_GATHER: Fraction(size * (n - 1)),
        Collective.ALL_TO_ALL: Fraction(size * (n - 1), n),
    }[program.collective or Collective.ALL_REDUCE]
    return int(most * 8 * 10**12 / Fraction(rate_bps)) + 2 * latency_ps


def simulate(
    program: MscclProgram, algorithm: object, size: int, network: tuple[str, str, float, int]
) -> int:
    """Simulated picoseconds of one call."""
    assert program.collective is not None
    name, n = program.collective.value, len(program.gpus)
    text = (
        f"topology: {{kind: switch, endpoints: {n}, rate: {network[0]}, latency: {network[1]}}}\n"
        "network: fair_share\n"
        f"jobs: [{{workload: {{kind: collective, collective: {name}, ranks: {n}, size: {size}}}}}]\n"
    )
    run = cosim.run(cosim.loads(text).with_settings({f"collectives.{name}": algorithm}))
    return run.summary.jobs[0].iteration_mean_ps or 0


def main(folder: Path) -> None:
    """Print the table."""
    rows: list[tuple[str, ...]] = [
        ("file", "collective", "GPUs", "size", "proved in", "time", "with flags", "ring", "direct", "bound")
    ]
    for path in sorted(folder.glob("*.xml")):
        program = read_program(path)
        before = time.perf_counter()
        prove_program(program)
        proved = time.perf_counter() - before
        network = PCI if path.name.startswith("ncv4") else NVSWITCH
        size = size_of(program)
        file = {"algorithm": "msccl", "path": str(path)}
        times = [
            simulate(program, algorithm, size, network)
            for algorithm in (file, {**file, "flags": True}, "ring", "direct")
        ]
        rows.append(
            (
                path.stem,
                program.collective.value if program.collective else "custom",
                str(len(program.gpus)),
                format_size(size),
                f"{proved * 1e3:.0f} ms",
                *(format_time(each) for each in times),
                format_time(bound_ps(program, size, network[2], network[3])),
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
