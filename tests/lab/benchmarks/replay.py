"""How fast and how large a replay is, message by message: ``python -m tests.lab.benchmarks.replay``.

Each case runs three times in a process of its own, after a small case of the same shape; that and imports
are not counted. Then

- ``cpu_s`` is user and system time of everything else, topology, planner, network, engine, records: the
  least of the three;
- ``first_cpu_s`` is that of the first: it alone has the proof of the template, and pays for each page of
  memory that the process touches for the first time;
- ``peak_mb`` is the process's peak resident set, interpreter and libraries included.

Every message is simulated; nothing is folded. The ring all-reduce moves 1 MiB a rank on ASTRA-sim's Ring of
50 GB/s and 500 ns links, all-to-all 1 MiB a rank on its Switch; endpoint delay 10 ns, reductions at
1600 GB/s, one chunk, ``congestion_aware``. ASTRA-sim itself takes 13.0 (ring-1024), 318 (ring-4096) and 22.0
(all-to-all-1024) CPU-seconds.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

REPEATS = 3
RATES_SEED = 20260301
SMALL = 16
"""Ranks of the case before the first, for which everything is imported."""


@dataclass(frozen=True)
class Case:
    """One replay. ``target`` is what is hoped for, shown beside; ``same_as`` names a case of equal digest."""

    name: str
    num_ranks: int
    target: str
    collective: str = "all_reduce"
    topology: str = "Ring"
    random_rates: bool = False
    release: str = "network"
    same_as: str = ""


CASES = (
    Case("ring-1024", 1024, "<= 0.5 CPU-s"),
    Case("ring-1024-random-rates", 1024, "<= 2 x ring-1024", random_rates=True),
    Case("ring-4096", 4096, "<= 10 CPU-s, 2000 MB"),
    Case("all-to-all-1024", 1024, "<= 0.5 CPU-s", collective="all_to_all", topology="Switch"),
    Case("ring-1024-engine-released", 1024, "<= 5 CPU-s", release="engine", same_as="ring-1024"),
)


def once(case: Case, num_ranks: int) -> tuple[float, int, str]:
    """(CPU seconds, messages, digest) of a case, on ``num_ranks`` ranks."""
    import numpy as np

    from cosim.context import HERE
    from cosim.engine.records import JobInfo
    from cosim.engine.replay import replay
    from cosim.formats.astra_sim.topology import BPS_PER_GIB, AstraSim
    from cosim.network.aware import CongestionAwareNetwork
    from cosim.pattern.config import CollectiveConfig
    from cosim.pattern.planner import Planner
    from cosim.workload.synthetic import Repeated

    settings: dict[str, Any] = {
        "topology": [case.topology],
        "npus_count": [num_ranks],
        "bandwidth": [50.0],
        "latency": [500.0],
    }
    config = {
        "endpoint_delay": "10ns",
        "reduction_rate": "1600GB/s",
        "all_reduce": "ring",
        "all_to_all": "direct",
    }
    one = {"collective": case.collective, "ranks": num_ranks, "size": "1MiB"}
    begin = time.process_time()
    topology = AstraSim.model_validate(settings).build(HERE)
    if case.random_rates:
        rates = np.random.default_rng(RATES_SEED).uniform(40.0, 60.0, topology.num_links) * BPS_PER_GIB
        topology = replace(topology, link_rate_bps=rates)
    job = JobInfo("one", Repeated.model_validate(one).build(HERE), np.arange(num_ranks, dtype=np.int32), 1, 0)
    planner = Planner(CollectiveConfig.model_validate(config))
    records = replay(
        topology,
        CongestionAwareNetwork(),
        [job],
        planner,
        release="engine" if case.release == "engine" else "network",
    )
    return time.process_time() - begin, records.num_messages, records.digest


def measure_here(case: Case, repeats: int) -> list[dict[str, Any]]:
    """Load the loops, run the case, and say what each run took: what the process of a case does."""
    once(case, SMALL)
    runs = []
    for _ in range(repeats):
        cpu_s, messages, digest = once(case, case.num_ranks)
        runs.append({"cpu_s": cpu_s, "messages": messages, "digest": digest})
    unit = 1 if sys.platform == "darwin" else 1024
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6
    return [{**run, "peak_mb": peak_mb} for run in runs]


def in_fresh_process(case: Case, repeats: int) -> list[dict[str, Any]]:
    """:func:`measure_here`, over there."""
    here = json.dumps({"case": asdict(case), "repeats": repeats})
    command = [sys.executable, "-m", "tests.lab.benchmarks.replay", "--here", here]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"{case.name}: its process ended with {done.returncode}")
    result: list[dict[str, Any]] = json.loads(done.stdout)
    return result


def measure(case: Case, repeats: int = REPEATS) -> dict[str, Any]:
    """A case's row: best and first CPU time, and peak memory, of ``repeats`` runs.

    Raises
    ------
    AssertionError
        Two runs of one case gave different digests.
    """
    in_fresh_process(replace(case, num_ranks=SMALL), 1)
    runs = in_fresh_process(case, repeats)
    assert len({run["digest"] for run in runs}) == 1, f"{case.name}: digests differ from run to run"
    return {
        "name": case.name,
        "messages": runs[0]["messages"],
        "cpu_s": round(min(run["cpu_s"] for run in runs), 3),
        "first_cpu_s": round(runs[0]["cpu_s"], 3),
        "peak_mb": round(runs[0]["peak_mb"], 1),
        "digest": runs[0]["digest"],
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the cases asked for, print rows."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.benchmarks.replay", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--only", choices=[case.name for case in CASES], help="one case instead of all")
    parser.add_argument("--json", action="store_true", help="a list of rows")
    parser.add_argument("--here", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.here:
        here = json.loads(given.here)
        print(json.dumps(measure_here(Case(**here["case"]), here["repeats"])))
        return
    by_name = {case.name: case for case in CASES}
    rows: dict[str, dict[str, Any]] = {}
    if not given.json:
        print(f"{'name':<28}{'messages':>12}{'cpu_s':>9}{'first':>9}{'peak_mb':>10}  target")
    for case in CASES if given.only is None else [by_name[given.only]]:
        row = rows[case.name] = measure(case)
        if case.same_as:
            same = rows.get(case.same_as) or measure(by_name[case.same_as], 1)
            assert row["digest"] == same["digest"], f"{case.name} and {case.same_as} give different digests"
        if not given.json:
            measured = (
                f"{row['messages']:>12}{row['cpu_s']:>9.3f}{row['first_cpu_s']:>9.3f}{row['peak_mb']:>10.1f}"
            )
            print(f"{case.name:<28}{measured}  {case.target}", flush=True)
    if given.json:
        for row in rows.values():
            del row["digest"]
        print(json.dumps(list(rows.values()), indent=2))


if __name__ == "__main__":
    main()
