"""Programs that our exports are written for, run on them: csg-htsim, LogGOPSim, Chakra's jsonizer, ASTRA-sim.

Each is found by an environment variable; without it, a test skips and says what to install.

=================  ====================================================================================
``HTSIM_ROOT``     a clone of github.com/Broadcom/csg-htsim, built by ``make`` in ``sim``
``LOGGOPSIM``      the program LogGOPSim of github.com/spcl/atlahs (``sim/LogGOPSim``); ``txt2bin`` beside it
``CHAKRA_PATH``    a clone's parent that has ``chakra/src`` (github.com/mlcommons/chakra) or ``CHAKRA_PYTHON``
``ASTRASIM_ROOT``  a clone of github.com/astra-sim/astra-sim, its analytical backend built
=================  ====================================================================================
"""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

import cosim
from cosim.experiment.scenario import Scenario
from cosim.formats.htsim.file import read_matrix

DEADLINE_S = 300


@dataclass(frozen=True)
class Ended:
    """What a consumer made of a file: flows or ranks that ended, and when the last one did, in ps."""

    count: int
    end_ps: int


HOW = {
    "HTSIM_ROOT": "clone github.com/Broadcom/csg-htsim, run make in sim, and set HTSIM_ROOT to the clone",
    "LOGGOPSIM": "clone github.com/spcl/atlahs, run make in sim/LogGOPSim, and set LOGGOPSIM to the program",
    "ASTRASIM_ROOT": "build ASTRA-sim and set ASTRASIM_ROOT",
}


def program(variable: str, place: str = "") -> Path:
    """What a variable names, or what lies at ``place`` below it; skips, saying what to install."""
    named = os.environ.get(variable)
    if not named:
        pytest.skip(HOW[variable])
    found = Path(named, *place.split("/"))
    if not found.is_file():
        pytest.fail(f"{variable} is {named}, and there is no file {found}")
    return found


def said(folder: Path, *command: str | Path) -> str:
    """What a program printed that leaves what it writes in ``folder``; it has to end well."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder, capture_output=True, text=True, timeout=DEADLINE_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{command[0]} ended with {done.returncode}: {done.stderr[-500:]}"
    return done.stdout


FAT_TREE = """
name: ring on a fat tree
topology: {kind: fat_tree, k: 4, rate: 100Gbps, latency: 1us}
network: fair_share
collectives: {all_reduce: ring}
jobs: [{workload: {kind: collective, collective: all_reduce, size: 16MiB, ranks: 16}}]
"""
"""The fat tree that ``htsim_ndp`` makes of 16 nodes, and its links."""


def htsim(folder: Path, scenario: Scenario) -> tuple[Ended, int]:
    """What ``htsim_ndp`` says of our matrix, and the number of flows in it."""
    ndp = program("HTSIM_ROOT", "sim/datacenter/htsim_ndp")
    cosim.translate(scenario, "htsim", folder)
    matrix, _ = read_matrix(folder / "traffic.cm")
    text = said(
        folder, ndp, "-tm", folder / "traffic.cm", "-nodes", str(matrix.nodes), "-linkspeed", "100000",
        "-hop_latency", "1", "-mtu", "4000", "-q", "200", "-cwnd", "60", "-strat", "perm", "-paths", "16",
        "-end", "10000000", "-o", folder / "log.dat",
    )  # fmt: skip
    ended = re.findall(r"flow_id (\d+) finished at ([\d.]+)", text)
    last_us = max(float(when) for _, when in ended)
    return Ended(len({flow for flow, _ in ended}), round(last_us * 1e6)), len(matrix.connections)


TRAINING = """
name: data parallel on a switch
topology: {kind: astra_sim, topology: [Switch], npus_count: [8], bandwidth: [50.0], latency: [500.0]}
network: congestion_unaware
collectives: {all_reduce: ring}
jobs:
  - workload:
      {kind: transformer, layers: 4, hidden: 2048, heads: 16, vocabulary: 8192, sequence: 1024,
       micro_batch: 2, data_parallel: 8, gpu: h100-sxm}
"""
"""One message at a time leaves each port, so that LogGP's L and G say all of the network."""


def loggopsim(folder: Path, scenario: Scenario) -> tuple[Ended, int]:
    """What LogGOPSim says of our schedule, and its number of ranks.

    :data:`TRAINING`'s network is its L and G; o and g are 0.
    """
    simulator = program("LOGGOPSIM")
    cosim.translate(scenario, "goal", folder)
    schedule, binary = folder / "schedule.goal", folder / "schedule.bin"
    said(folder, simulator.with_name("txt2bin"), "-i", schedule, "-o", binary)
    per_byte_ns = 1e9 / (50 * 2**30)
    # -S 1: a send ends when it has arrived, as ours do.
    text = said(
        folder, simulator, "-f", binary, "-L", "1000", "-o", "0", "-g", "0", "-G", f"{per_byte_ns}", "-S", "1"
    )
    hosts = re.findall(r"^Host (\d+): (\d+)", text, re.MULTILINE)
    last_ns = max(int(end_ns) for _, end_ns in hosts)
    return Ended(len(hosts), last_ns * 1000), int(re.findall(r"num_ranks (\d+)", schedule.read_text())[0])


def astra_sim(folder: Path, scenario: Scenario) -> tuple[Ended, int]:
    """What ASTRA-sim says of our export, and its number of NPUs."""
    program("ASTRASIM_ROOT", "build/astra_analytical/build.sh")
    records = cosim.translate(scenario, "astra-sim", folder).run(lambda _: None).records
    return Ended(len(records.finish_ps[0]), int(records.finish_ps[0].max())), records.jobs[
        0
    ].workload.world_size
