"""Which cut is best? GPT-3 175B on 1,024 A100s by (tp, pp, dp): ``python -m tests.lab.benchmarks.what_if``.

Every (tp, pp, dp) with tp inside a host is simulated, network in the loop, on the fabric of ``scale``, with
the same batch; those that don't fit into a GPU's memory are listed with what they need. The optimizer is
sharded over dp. The range is one sigma of the compute model's error on rows that its calibration had not
seen; much of it is common to all cuts, so that a ranking is better known than a time. Rows whose ranges do
not overlap the best one's are surely worse.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

from .scale import A100, FABRIC, scenario

GPUS = 1024


@dataclass(frozen=True)
class Row:
    """What came of a cut; ``error`` where it was refused."""

    cut: tuple[int, int, int]
    iteration_s: float = 0.0
    exposed: float = 0.0
    memory: str = ""
    wall_s: float = 0.0
    error: str = ""


def simulate(cut: tuple[int, int, int], model: str, batch: int) -> Row:
    """Run a cut; a refusal is a row, too."""
    import cosim
    from cosim.errors import InputError
    from cosim.experiment.scenario import loads

    tp, pp, dp = cut
    workload = (
        f"{{kind: model, model: {model}, gpu: a100-80gb, parallel: {{tp: {tp}, pp: {pp}, dp: {dp}}}, "
        f"batch: {batch}, sharded_optimizer: {'true' if dp > 1 else 'false'}}}"
    )
    started = time.perf_counter()
    try:
        done = cosim.run(loads(scenario(FABRIC.format(leaves=16, ports=64, **A100), workload)))
    except InputError as error:
        why = error.message.split("needs ")[-1].split(":")[0]
        return Row(cut, error=f"needs {why} a GPU" if "does not fit" in error.message else error.message)
    job = done.summary.jobs[0]
    assert job.iteration_mean_ps is not None
    (memory,) = (line for line in job.read if "fullest" in line)
    return Row(
        cut,
        job.iteration_mean_ps / 1e12,
        job.exposed.mean_ps / job.iteration_mean_ps,
        memory.split("GPU ")[1].split(":")[0],
        time.perf_counter() - started,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Simulate all cuts, fastest first."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.benchmarks.what_if", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--model", default="gpt3-175b", help="of `cosim list model`")
    parser.add_argument("--batch", type=int, default=512, help="sequences of an iteration (512)")
    parser.add_argument("--deepest", type=int, default=32, help="stages at most (32)")
    parser.add_argument("--processes", type=int, default=2, help="at once (2)")
    given = parser.parse_args(arguments)
    powers = [1 << k for k in range(11)]
    cuts = [
        (tp, pp, GPUS // (tp * pp))
        for tp in powers[:4]
        for pp in powers
        if tp * pp <= GPUS and pp <= given.deepest and given.batch % (GPUS // (tp * pp)) == 0
    ]
    cuts.sort(key=lambda cut: cut[2])  # few replicas have the most micro-batches
    started = time.perf_counter()
    with ProcessPoolExecutor(given.processes) as pool:
        futures = [pool.submit(simulate, cut, given.model, given.batch) for cut in cuts]
        rows = [future.result() for future in futures]
    from cosim.gpu.catalogue import A100_80GB
    from cosim.registry import find

    known, model = A100_80GB.calibration, find("cosim.models", given.model)
    assert known is not None
    sigma = known.uncertainty
    flops = 3 * model.flops_per_token(model.sequence) * model.sequence * given.batch
    ran = sorted((row for row in rows if not row.error), key=lambda row: row.iteration_s)
    print(f"{model.name}, {GPUS} A100-80GB, batch {given.batch}; one sigma +-{sigma:.0%} ({known.source})")
    print("  tp  pp   dp  iteration  range            of peak  exposed   memory    simulated in")
    for row in ran:
        tp, pp, dp = row.cut
        s = row.iteration_s
        print(
            f"  {tp:2} {pp:3} {dp:4} {s:8.2f} s  {s * (1 - sigma):5.2f} to {s * (1 + sigma):5.2f} s"
            f"  {flops / s / GPUS / 312e12:7.1%}  {row.exposed:7.1%}  {row.memory:>8}  {row.wall_s:7.1f} s"
        )
    for row in rows:
        if row.error:
            tp, pp, dp = row.cut
            print(f"  {tp:2} {pp:3} {dp:4}  {row.error}")
    print(
        f"{len(ran)} cuts simulated, {len(rows) - len(ran)} refused, in {time.perf_counter() - started:.0f} s"
    )


if __name__ == "__main__":
    main()
