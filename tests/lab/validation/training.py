"""Published training jobs beside simulated ones: FSDP on A100 and H100, Megatron from H100 to GB300.

``python -m tests.lab.validation.training [fsdp|megatron]``: for each group of jobs rows, mean error, bias,
Spearman, how many are within their interval of 80 %, apart for rows of an even number in their table, which
FSDP's numbers were fitted to, and those held out (of Megatron's jobs Llama 3 on H100, 8B and 70B on GB200
were fitted to, and Qwen3 30B on B200 for the host, on GB200 for its memory; none on B300 and GB300);
``--only=WORD`` takes rows with that word in a column (``--only=Qwen3_30B --only=H100``: with both),
``--host=20us`` takes hosts that issue an operator in so long, ``--rows`` prints each row, FSDP's with what it
needs of a GPU's memory, ``--unstated`` those that can't be stated, and why, ``--scaling`` FSDP's jobs that
differ in their number of GPUs alone, ``--by-system`` how many rows of each system are within an interval as
wide as the other systems' errors are, and how often chance alone would have 75 to 85 % of them there (of
FSDP's tables rows held out only). By the fast path (``closed``): collectives take their closed forms, and a
pipeline of many micro-batches is worked out from two numbers of them, of which its time is a linear function.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from statistics import NormalDist

import numpy as np
from scipy.stats import spearmanr

from cosim.context import HERE
from cosim.gpu.calibrate import gpu_values
from cosim.gpu.catalogue import read
from cosim.gpu.gpus import Gpu
from cosim.gpu.parameters import changed
from cosim.models.catalogue.workload import ModelWorkload
from cosim.pattern.nccl import Nccl
from cosim.pattern.nccl_host import SYSTEMS, SystemName
from tests.lab.validation import fsdp_jobs, intervals, megatron_jobs, weak_scaling
from tests.lab.validation.closed import Cluster, iteration_s

Row = fsdp_jobs.Row | megatron_jobs.Row
SYSTEM: dict[str, SystemName] = {
    "a100-40gb": "a100", "a100-80gb": "a100", "h100-sxm": "h100", "b200": "b200", "b300": "b200",
    "gb200": "gb200", "gb300": "gb200",
}  # fmt: skip


def cluster(row: Row) -> Cluster:
    """Hosts, links and NCCL of a row."""
    system = SYSTEM[row.gpu]
    if isinstance(row, fsdp_jobs.Row):
        gpus, nic = 8, 25e9 if system == "a100" else 50e9
    else:
        gpus, nic = megatron_jobs.DOMAIN[row.gpu], megatron_jobs.NIC_BYTES[row.gpu]
    nccl = Nccl(system=system).model_copy(
        update={"rails": min(gpus, 64), "network_rate": gpus * nic * 8, "nvlink_rate": 240e9 * 8}
    )
    host = megatron_jobs.HOST_BYTES.get(row.gpu, 0.0)
    return Cluster(gpus, SYSTEMS[system].link_rate * 1e6, nic, nccl, host_rate=host)


def predicted_s(row: Row, host: str | None = None) -> float:
    """Seconds of an iteration; ``host``: what another host takes to issue an operator."""
    where = cluster(row)
    other = {} if host is None else {"host": {"kind": "custom", "operator_time": host}}
    if isinstance(row, fsdp_jobs.Row):
        count, few, make = int(row.job["ga"]), (2, 3), fsdp_jobs.workload
    else:
        deep = row.number("pp")
        count, few, make = row.micro_batches, (max(2 * deep, 2), max(3 * deep, 3)), megatron_jobs.workload  # type: ignore[assignment]
    return by_few(
        lambda each: iteration_s(make(row, each).with_settings(**other).build(HERE), where),  # type: ignore[arg-type]
        count,
        few,
    )


def by_few(of: Callable[[int | None], float], count: int, few: tuple[int, int]) -> float:
    """Seconds with ``count`` micro-batches, each of which adds as much: by jobs of ``few``, if it has more.

    ``of`` says what a job of so many takes; of None: of its own.
    """
    if count <= few[1]:
        return of(None)
    first, second = (of(each) for each in few)
    return first + (second - first) / (few[1] - few[0]) * (count - few[0])


def fsdp_s(row: fsdp_jobs.Row, gpu: Mapping[str, object] | str, stalls: float | None = None) -> float:
    """Seconds of an iteration of an FSDP row on another GPU; ``stalls``: other than the row's."""

    def of(count: int | None) -> float:
        given = fsdp_jobs.settings(row, count) | {"gpu": gpu}
        if stalls is not None:
            given["framework"] = given.get("framework", {}) | {"stalls": stalls}
        return iteration_s(ModelWorkload.model_validate(given).build(HERE), cluster(row))

    return by_few(of, int(row.job["ga"]), (2, 3))


def with_numbers(gpu: Gpu, numbers: Mapping[str, float]) -> dict[str, object]:
    """A GPU with other numbers, as a scenario says it."""
    values = gpu_values(changed(gpu, dict(numbers)))
    return {"kind": "custom"} | {key: each for key, each in values.items() if each is not None}


def _needed(row: Row) -> str:
    size = read(row.gpu).memory
    if not isinstance(row, fsdp_jobs.Row) or size is None:
        return ""
    return f", {fsdp_jobs.workload(row).memory_needed() / size:.2f} of its memory"


def _sigma(row: Row) -> float:
    framework = "pytorch" if isinstance(row, fsdp_jobs.Row) else "megatron"
    return float(np.hypot(*read(row.gpu).error("bf16", experts=row.has_experts, framework=framework)))


def report(name: str, found: Sequence[tuple[int, Row, float]]) -> str:
    """A line: rows, mean error, bias, rank correlation, how many are within their interval of 80 %."""
    ratio = np.array([one[2] for one in found])
    measured = np.array([one[1].seconds for one in found])
    sigma = np.array([_sigma(row) for _, row, _ in found])
    error, within = ratio - 1, np.abs(1 / ratio - 1) <= NormalDist().inv_cdf(0.9) * sigma
    rank = spearmanr(ratio * measured, measured).statistic if len(ratio) > 2 else float("nan")
    figures = f"{np.abs(error).mean():6.1%}  {error.mean():+6.1%}  {rank:8.3f}  {within.mean():6.0%}"
    return f"{name:28s} {len(error):4d}  {figures}"


def main(arguments: Sequence[str]) -> None:
    """Report the tables named, or both."""
    unseen: list[tuple[Row, float]] = []
    tables = [name for name in arguments if not name.startswith("--")] or ["fsdp", "megatron"]
    for table in tables:
        every: list[Row] = [*(fsdp_jobs.rows() if table == "fsdp" else megatron_jobs.rows())]
        words = [name.removeprefix("--only=") for name in arguments if name.startswith("--only=")]
        why = {id(row): row.why_not() if isinstance(row, megatron_jobs.Row) else "" for row in every}
        if "--unstated" in arguments:
            for row in every:
                if why[id(row)]:
                    print(f"{row.job['model']:28s} {row.job['gpu']:10s} {row.job['gpus']:5s} {why[id(row)]}")
            continue
        known: dict[str, float] = {}
        host = next((name.removeprefix("--host=") for name in arguments if name.startswith("--host=")), None)
        found: list[tuple[int, Row, float]] = []
        for number, row in enumerate(every):
            if why[id(row)] or not all(word in " ".join(row.job.values()) for word in words):
                continue
            key = str(row.job | {"tokens_s_gpu": "", "tflops_gpu": ""})
            if key not in known:
                known[key] = predicted_s(row, host)
            found.append((number, row, known[key] / row.seconds))
            if "--rows" in arguments:
                told = " ".join(value for name, value in row.job.items() if name not in ("extra", "mfu"))
                took, measured = known[key], row.seconds
                line = f"{row.group:24s} {told}: {took:.3f} s, {measured:.3f} s, {took / measured - 1:+.1%}"
                print(line + _needed(row))
                sys.stdout.flush()
        unseen += [(row, ratio) for number, row, ratio in found if table == "megatron" or number % 2]
        if "--scaling" in arguments:
            jobs = [(row, ratio) for _, row, ratio in found if isinstance(row, fsdp_jobs.Row)]
            print("\n".join(weak_scaling.report(jobs)))
            continue
        print(f"{table}: {len(found)} of {len(every)} rows   rows   error    bias  Spearman  covered")
        for held, what in ((None, "all"), (0, "looked at"), (1, "held out")):
            for group in (*sorted({name for _, row, _ in found for name in (row.family, row.group)}), None):
                own = [
                    one
                    for one in found
                    if held in (None, one[0] % 2) and group in (None, one[1].family, one[1].group)
                ]
                if own and (group is None or held is None):
                    name = what if group is None else f"  {group}"
                    print(report(name, own))
    if "--by-system" in arguments:
        print("\n".join(intervals.by_system(unseen)))


if __name__ == "__main__":
    main(sys.argv[1:])
