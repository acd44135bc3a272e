"""Predicts measured runs through the full path, workload, pattern and replay, and says how far off it is.

``python -m tests.lab.validation.measured FILE...``: tables of Megatron-DeepSpeed iterations or of nccl-tests
all-reduces, told apart by their columns; without FILE, those in ``tests/data/measured``. Prints every fitted
parameter, for each table the mean absolute percentage error, median, worst and Spearman's rank correlation,
and the error by (tp, pp). Rows of a table run in as many processes as there are cores. ``--rows FILE``
writes each row's prediction. ``--megatron-lm``: also Megatron-LM's times of Korthikanti et al. (arXiv
2205.05198, table 5), nothing refitted, and with one factor from its 22B rows, beside a closed form;
``--megatron-lm=22B,175B``: those only, and no table (a trillion parameters take the longest by far).
"""

from __future__ import annotations

import csv
import re
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from cosim.experiment.run import run
from cosim.gpu.catalogue import A100_80GB
from cosim.pattern.nccl import Nccl
from cosim.units import PS_PER_S
from tests.inputs import find
from tests.lab.validation.measured_jobs import LAUNCH_PS, megatron, nccl_tests, scenario
from tests.lab.validation.megatron_lm import MEGATRON_LM, Published, closed_s, job

F64 = NDArray[np.float64]
DATA = find("measured")
COLUMNS = {
    "# GPUs": "gpus",
    "global batch": "global_batch",
    "micro batch": "micro_batch",
    "hidden size": "hidden",
    "attention heads": "heads",
    "# layers": "layers",
    "sequence length": "sequence",
    "tensor parallelism": "tp",
    "data parallelism": "dp",
    "pipeline parallelism": "pp",
}
TIME = "iteration time (ms)"
FITTED = {
    "gpu": ("unaligned",),
    "host": ("gap_time", "operator_time", "step_time"),
    "nccl": ("latency", "nvlink_efficiency", "loop_gap"),
}
"""Names of the parameters that were fitted; ``LAUNCH_PS`` of nccl-tests is one more."""


@dataclass(frozen=True)
class Row:
    """One measured iteration: what was run, and seconds."""

    job: dict[str, int]
    measured_s: float


def read_rows(path: Path) -> list[Row]:
    """Rows of a Megatron-DeepSpeed table."""
    with path.open(newline="") as file:
        return [
            Row({name: int(float(line[key])) for key, name in COLUMNS.items()}, float(line[TIME]) / 1e3)
            for line in csv.DictReader(file)
        ]


def predict(row: Row) -> float:
    """Seconds of an iteration."""
    return _iteration_s(megatron(row.job), row.job["gpus"])


def _iteration_s(workload: dict[str, object], gpus: int) -> float:
    records = run(scenario(workload, gpus)).records
    return int(records.iteration_end_ps[0].max()) / PS_PER_S


def predict_all(rows: Sequence[Row], pool: ProcessPoolExecutor) -> list[float]:
    """Predictions, largest runs first; equal jobs once."""
    unique = {tuple(sorted(row.job.items())): row for row in rows}

    def work(row: Row) -> int:
        job = row.job
        return job["global_batch"] // (job["dp"] * job["micro_batch"]) * job["layers"] * (job["tp"] > 1)

    order = sorted(unique, key=lambda key: -work(unique[key]))
    seconds = {}
    for key, took in zip(order, pool.map(predict, [unique[key] for key in order]), strict=True):
        seconds[key] = took
        if sys.stderr.isatty():
            print(f"\r{len(seconds)} of {len(order)} jobs ", end="", file=sys.stderr, flush=True)
    return [seconds[tuple(sorted(row.job.items()))] for row in rows]


def read_nccl(path: Path) -> tuple[list[int], F64]:
    """Sizes, and the mean of out-of-place and in-place seconds."""
    with path.open(newline="") as file:
        lines = list(csv.reader(file))[1:]
    sizes = [int(line[0]) for line in lines]
    return sizes, np.array([(float(line[3]) + float(line[5])) / 2e9 for line in lines])


def predict_nccl(gpus: int, sizes: list[int]) -> F64:
    """Seconds of an all-reduce of each size on one host."""
    records = run(scenario(nccl_tests(gpus, sizes), gpus)).records
    op = records.ops
    mine = op.rank == 0
    last = np.zeros(2 * len(sizes), np.int64)
    last[op.op[mine]] = op.end_ps[mine]
    done = last.reshape(-1, 2).max(axis=1)
    return np.asarray(np.diff(done, prepend=0) / PS_PER_S, np.float64)


def report(name: str, predicted: F64, measured: F64) -> str:
    """One line of errors."""
    error = predicted / measured - 1
    worst = error[np.abs(error).argmax()]
    rank = spearmanr(predicted, measured).statistic
    return (
        f"{name}: {len(error)} rows, MAPE {np.abs(error).mean():.2%}, median {np.median(np.abs(error)):.2%}, "
        f"worst {worst:+.1%}, bias {error.mean():+.2%}, Spearman {rank:.4f}"
    )


def by_parallelism(rows: Sequence[Row], predicted: F64) -> str:
    """MAPE for each (tp, pp)."""
    found: dict[tuple[int, int], list[float]] = defaultdict(list)
    for row, seconds in zip(rows, predicted, strict=True):
        found[row.job["tp"], row.job["pp"]].append(abs(seconds / row.measured_s - 1))
    cells = [
        f"({tp}, {pp}) {np.mean(errors):.1%} of {len(errors)}" for (tp, pp), errors in sorted(found.items())
    ]
    return "  by (tp, pp): " + ", ".join(cells)


def parameters() -> list[str]:
    """Every fitted number, with unit, bounds and meaning."""
    lines = []
    for what, spec in (("gpu", A100_80GB.efficiency), ("host", A100_80GB.host), ("nccl", Nccl())):
        for name in FITTED[what]:
            field = type(spec).model_fields[name]
            bounds = [
                getattr(one, key) for one in field.metadata for key in ("ge", "le") if hasattr(one, key)
            ]
            value = getattr(spec, name)
            times = field.annotation is int
            shown = [f"{each / 1e6:g} us" if times else f"{each:g}" for each in (value, *bounds)]
            lines.append(f"  {what}.{name} = {shown[0]}  [{shown[1]}, {shown[2]}]: {field.description}")
    lines.append(
        f"  nccl-tests launch = {LAUNCH_PS / 1e6:g} us  [0 us, 50 us]: one thread issuing, for each GPU"
    )
    return lines


def megatron_lm(entry: Published, selective: bool) -> float:
    """Seconds of a row of Megatron-LM's table."""
    return _iteration_s(job(entry, selective), entry.tp * entry.pp)


def main(arguments: list[str]) -> None:
    """Predict the tables named, or those in ``tests/data/measured``."""
    written = Path(arguments.pop(arguments.index("--rows") + 1)) if "--rows" in arguments else None
    published = next((each for each in arguments if each.startswith("--megatron-lm")), None)
    chosen = published.partition("=")[2].split(",") if published and "=" in published else []
    names = [Path(name) for name in arguments if not name.startswith("--")]
    paths = names
    if not names and not chosen:
        paths = [*sorted(DATA.glob("nccl_allreduce_*.csv")), *sorted(DATA.glob("megatron_*.csv"))]
    print("fitted:", *parameters(), sep="\n")
    lines = ["table,job,predicted_s,measured_s"]
    with ProcessPoolExecutor() as pool:
        for path in paths:
            started = time.perf_counter()
            gpus = re.search(r"gpus(\d+)", path.name)
            if gpus:
                sizes, measured = read_nccl(path)
                predicted = predict_nccl(int(gpus[1]), sizes)
                lines += [
                    f"{path.name},{size},{p},{m}"
                    for size, p, m in zip(sizes, predicted, measured, strict=True)
                ]
                print(report(path.name, predicted, measured), end="")
            else:
                rows = read_rows(path)
                predicted = np.array(predict_all(rows, pool))
                lines += [
                    f"{path.name},{'/'.join(map(str, row.job.values()))},{p},{row.measured_s}"
                    for row, p in zip(rows, predicted, strict=True)
                ]
                print(report(path.name, predicted, np.array([row.measured_s for row in rows])))
                print(by_parallelism(rows, predicted), end="")
            print(f"  ({time.perf_counter() - started:.0f} s)", flush=True)
        if published:
            _megatron_lm(pool, chosen)
    if written:
        written.write_text("\n".join(lines) + "\n")


def _megatron_lm(pool: ProcessPoolExecutor, named: Sequence[str]) -> None:
    jobs = [
        (entry, selective)
        for entry in MEGATRON_LM
        if not named or entry.name in named
        for selective in (False, True)
    ]
    print("Megatron-LM, arXiv 2205.05198, table 5; full path (closed form), measured:", flush=True)
    replayed, closed = [], []
    for (entry, selective), seconds in zip(
        jobs, pool.map(megatron_lm, *zip(*jobs, strict=True)), strict=True
    ):
        replayed.append(seconds / entry.measured_s(selective))
        closed.append(closed_s(entry, selective) / entry.measured_s(selective))
        how = "selective recomputation, sequence parallel" if selective else "full recomputation"
        measured = entry.measured_s(selective)
        print(f"  {entry.name} {how}: {seconds:.2f} s ({closed[-1] * measured:.2f} s), {measured} s", end=" ")
        print(f"measured, {replayed[-1] - 1:+.1%} ({closed[-1] - 1:+.1%})", flush=True)
    others = [number for number, (entry, _) in enumerate(jobs) if entry.name != "22B"]
    for what, ratio in (("full path", np.array(replayed)), ("closed form", np.array(closed))):
        if others and len(others) < len(jobs):
            scale = 1 / np.delete(ratio, others).mean()
            print(f"  {what}, the {len(others)} of 175B and more: mean error", end=" ")
            print(f"{np.abs(ratio[others] - 1).mean():.1%}; with one factor, {scale:.3f}, from the", end=" ")
            print(f"22B rows: {np.abs(ratio[others] * scale - 1).mean():.1%}")


if __name__ == "__main__":
    main(sys.argv[1:])
