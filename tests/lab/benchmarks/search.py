"""How many runs does a search need? ``python -m tests.lab.benchmarks.search [--space cuts|rates|small]``.

``cuts``: those of ``what_if``, GPT-3 175B on 1,024 A100s by (tp, pp, dp): all are run, then in how many runs
each optimizer has the best, and one within 2 % of it. ``rates``: Mixtral 8x7B, eight layers of it, on 64
H100s by (tp, pp, dp, ep), schedule, micro-batch, and the rates of NVLink and NICs, thousands of points, by
tokens a second and dollar; with ``--check N`` so many others are run, drawn by chance, or all of them, and
compared with what was found and with their bounds. ``small``: 200 random spaces, each searched and run whole.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import islice
from typing import Any

import cosim
from cosim.experiment.executors.local import LocalExecutor
from cosim.experiment.search.points import PointFinder
from cosim.experiment.search.tries import Tries
from tests.experiment.search.spaces import small_space

from .scale import A100, FABRIC, scenario
from .what_if import GPUS

BATCH, DEEPEST = 512, 32


def cuts() -> cosim.Design:
    """The cuts, an axis of one."""
    powers = [1 << k for k in range(11)]
    found: dict[str, Any] = {}
    for tp in powers[:4]:
        for pp in powers:
            dp = GPUS // (tp * pp)
            if tp * pp <= GPUS and pp <= DEEPEST and BATCH % dp == 0:
                parallel = {"tp": tp, "pp": pp, "dp": dp}
                settings = {"jobs.0.workload.parallel": parallel, "jobs.0.workload.sharded_optimizer": dp > 1}
                found[f"{tp} x {pp} x {dp}"] = settings
    workload = (
        f"{{kind: model, model: gpt3-175b, gpu: a100-80gb, batch: {BATCH}, parallel: "
        "{tp: 8, pp: 8, dp: 16}}"
    )
    text = scenario(FABRIC.format(leaves=16, ports=64, **A100), workload)
    return cosim.Design(scenario=cosim.loads(text), axes={"tp x pp x dp": found})


MIXTRAL = """
topology:
  kind: leaf_spine
  leaves: 8
  spines: 8
  endpoints_per_leaf: 8
  latency: 500ns
  routing: dmodk
  hosts: {gpus: 8, nvlink_rate: 450GB/s, nvlink_latency: 300ns, nics: 8, nic_rate: 400Gbps, rails: true}
network: fair_share
fold: always
jobs:
- workload:
    kind: model
    model: {kind: mixtral-8x7b, layers: 8}
    gpu: h100-sxm
    batch: 64
    sharded_optimizer: true
"""


def rates() -> cosim.Design:
    """Every way to cut it over 64 GPUs, on fabrics of which NVLink and NICs take 4 Tbps of a GPU together."""
    powers = [1, 2, 4, 8]
    found: dict[str, Any] = {}
    for tp in powers:
        for pp in powers:
            dp = 64 // (tp * pp)
            for ep in [one for one in powers if dp % one == 0]:
                parallel = {"tp": tp, "pp": pp, "dp": dp, "ep": ep}
                for name, more in SCHEDULES.items():
                    if pp > 1 or name == "1f1b":
                        found[f"tp {tp} pp {pp} dp {dp} ep {ep} {name}"] = {
                            "jobs.0.workload.parallel": {**parallel, **more}
                        }
    return cosim.Design(
        scenario=cosim.loads(MIXTRAL),
        axes={
            "cut": found,
            "micro-batch": {"jobs.0.workload.micro_batch": [1, 2, 4]},
            "NVLink": {"topology.hosts.nvlink_rate": [f"{rate}GB/s" for rate in NVLINK]},
            "NIC": {"topology.hosts.nic_rate": [f"{rate}Gbps" for rate in NIC]},
        },
        objective="tokens_per_s_per_dollar",
        constraints={"endpoint_rate": "4Tbps"},
        runs=60,
        tolerance=0.005,
    )


SCHEDULES: dict[str, dict[str, Any]] = {
    "1f1b": {},
    "gpipe": {"schedule": "gpipe"},
    "interleaved": {"schedule": "interleaved", "virtual_stages": 2},
}
NVLINK = (150, 225, 300, 450, 900)
NIC = (50, 100, 200, 400, 800, 1600)


def _cuts(workers: int) -> None:
    design = cuts()
    with tempfile.TemporaryDirectory() as store:
        executor = LocalExecutor(workers=workers)
        every = cosim.search(design, optimizer="all", store=store, executor=executor)
        best = every.best
        assert best is not None
        print(every)
        for name in ("bounds", "all", "optuna"):
            values = _values(cosim.search(design, optimizer=name, store=store))
            least = best.values["iteration"]
            at, near = values.index(least) + 1, [v <= 1.02 * least for v in values].index(True) + 1
            print(f"{name}: the best in {at} runs, within 2 % in {near}; ended after {len(values)}")


def _values(done: cosim.SearchRun) -> list[float]:
    name = done.objectives[0]
    return [one.values.get(name, float("inf")) for one in done.tried]


def _rates(checked: int, workers: int, store: str | None) -> None:
    design = rates()
    cpu, wall = time.process_time(), time.monotonic()
    done = cosim.search(design)
    print(done)
    print(f"{time.process_time() - cpu:.0f} CPU-s, {time.monotonic() - wall:.0f} s")
    if checked:
        _check(design, done, checked, workers, store)


def _check(design: cosim.Design, done: cosim.SearchRun, count: int, workers: int, store: str | None) -> None:
    """Run points drawn by chance: none is above its bound, and none better than what was found. With a store
    it goes on where it was.
    """
    every = random.Random(20).sample(
        [*design.combinations()], math.prod(len(one) for _, one in design.labels)
    )
    finder = PointFinder(design)
    able = (one for labels, changes in every if not (one := finder.known(labels, changes)).point.refused)
    name = design.objectives[0]
    assert done.best is not None
    executor = LocalExecutor(workers=workers)
    tries = Tries(design, store, executor)
    best, tight = done.best.values[name], list[float]()
    left = islice(able, count)
    while part := [*islice(left, 200)]:  # together, to look at what came of them
        for tried in tries.run(part, 0):
            if tried.error:
                print(f"{' / '.join(tried.labels)}: {tried.error}")
                continue
            assert tried.values[name] <= tried.bounds[name]
            best = max(best, tried.values[name])
            tight.append(tried.bounds[name] / tried.values[name] - 1)
        print(f"\r{len(tight)} run", end="", file=sys.stderr, flush=True)
    found = done.best.values[name] / best
    print(
        f"{len(tight)} points run by chance: the one found has {found:.4f} of the best; their bounds are off "
        f"by {sum(tight) / len(tight):.1%} on average, {max(tight):.1%} at most"
    )


def _small(count: int) -> None:
    chance, runs, all_runs = random.Random(20), 0, 0
    for _ in range(count):
        space = small_space(chance)
        found, every = cosim.search(space), cosim.search(space, optimizer="all")
        assert found.proven
        assert found.best is not None
        assert every.best is not None
        assert found.best.values == every.best.values
        runs, all_runs = runs + len(found.tried), all_runs + len(every.tried)
    print(f"{count} small spaces: the best of each, in {runs} runs instead of {all_runs}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.benchmarks.search", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--space", choices=("cuts", "rates", "small"), default="cuts", help="(cuts)")
    parser.add_argument("--workers", type=int, default=1, help="at once (1)")
    parser.add_argument("--check", type=int, default=0, help="rates: points to run besides (0)")
    parser.add_argument("--store", help="rates: where runs besides are kept, to go on from there")
    parser.add_argument("--spaces", type=int, default=200, help="small: how many (200)")
    given = parser.parse_args(arguments)
    if given.space == "cuts":
        _cuts(given.workers)
    elif given.space == "small":
        _small(given.spaces)
    else:
        _rates(given.check, given.workers, given.store)


if __name__ == "__main__":
    main()
