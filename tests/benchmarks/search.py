"""How many runs does a search need? ``python -m tests.benchmarks.search``.

The cuts of ``what_if``, GPT-3 175B on 1,024 A100s by (tp, pp, dp): all are run, then in how many runs each
optimizer has the best, and one within 2 % of it. Runs are kept, so that each cut is simulated once.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from typing import Any

import cosim
from cosim.experiment.executors.local import LocalExecutor
from cosim.experiment.search.optimizer import OPTIMIZERS
from cosim.experiment.search.search import search

from .scale import A100, FABRIC, scenario
from .what_if import GPUS

BATCH, DEEPEST = 512, 32


def design() -> cosim.Sweep:
    """The cuts, an axis of one."""
    powers = [1 << k for k in range(11)]
    cuts: dict[str, Any] = {}
    for tp in powers[:4]:
        for pp in powers:
            dp = GPUS // (tp * pp)
            if tp * pp <= GPUS and pp <= DEEPEST and BATCH % dp == 0:
                parallel = {"tp": tp, "pp": pp, "dp": dp}
                settings = {"jobs.0.workload.parallel": parallel, "jobs.0.workload.sharded_optimizer": dp > 1}
                cuts[f"{tp} x {pp} x {dp}"] = settings
    workload = (
        f"{{kind: model, model: gpt3-175b, gpu: a100-80gb, batch: {BATCH}, parallel: "
        "{tp: 8, pp: 8, dp: 16}}"
    )
    text = scenario(FABRIC.format(leaves=16, ports=64, **A100), workload)
    return cosim.Sweep(scenario=cosim.loads(text), axes={"tp x pp x dp": cuts})


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a row for each optimizer."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.search", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--workers", type=int, default=1, help="at once (1)")
    given = parser.parse_args(arguments)
    sweep = design()
    with tempfile.TemporaryDirectory() as store:
        executor = LocalExecutor(workers=given.workers)
        every = search(sweep, optimizer="all", store=store, executor=executor)
        best = every.best
        assert best is not None
        print(every)
        for name in OPTIMIZERS:
            found = search(sweep, optimizer=name, store=store)
            values = [one.value for one in found.tried]
            at, near = values.index(best.value) + 1, [v <= 1.02 * best.value for v in values].index(True) + 1
            print(f"{name}: the best in {at} runs, within 2 % in {near}; ended after {len(values)}")


if __name__ == "__main__":
    main()
