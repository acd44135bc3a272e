"""What cosim wrote itself, damaged or edited by hand: runs, unfinished runs and their logs, profiles."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import cosim
from cosim.experiment.resume import load_unfinished
from cosim.network.aware import CongestionAwareNetwork
from cosim.profiler import file as profiles
from cosim.protocol.client import connect
from cosim.protocol.replay_log import LogReader
from cosim.protocol.server import Server
from cosim.protocol.session import ServerConfig
from tests.inputs import ROOT
from tests.lab.fuzz.importers import Folder
from tests.lab.fuzz.tally import Target
from tests.protocol import small_run

SCENARIO = """
topology: {kind: ring, endpoints: 4, rate: 80Gbps, latency: 0ns}
network: congestion_aware
record: {messages: FORMAT}
jobs:
  - workload: {kind: periodic, communication: all_reduce, compute: 1us, ranks: 4, size: 4kB}
    iterations: 2
"""


@cache
def a_run(messages: str) -> Mapping[str, bytes]:
    """The files of a run."""
    with tempfile.TemporaryDirectory() as place:
        cosim.run(SCENARIO.replace("FORMAT", messages), out=place)
        return {file.name: file.read_bytes() for file in Path(place).iterdir()}


def read_run(folder: Path) -> None:
    """All that can be asked of a stored run."""
    run = cosim.load_run(folder)
    for table in (run.operations, run.collectives, run.links, run.iterations, run.messages):
        repr(table)
    str(run)
    str(cosim.compare(folder, folder))


@cache
def an_unfinished_run() -> Mapping[str, bytes]:
    """The scenario and the log of a run that broke off."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        with Server(ServerConfig(CongestionAwareNetwork), f"unix:{folder / 's'}") as server:
            network = connect(server.address)
            network.log_to(folder / "injections.log")
            small_run.run(network)
        scenario = cosim.loads(SCENARIO.replace("FORMAT", "npz"))
        content = {"name": "x", "base": str(folder), "scenario": scenario.as_written()}
        (folder / "unfinished.json").write_text(json.dumps(content))
        return {name: (folder / name).read_bytes() for name in ("injections.log", "unfinished.json")}


def read_unfinished(folder: Path) -> None:
    """What going on with a run reads first."""
    load_unfinished(folder)
    log = LogReader(folder / "injections.log")
    for _ in log.exchanges():
        pass


@cache
def a_profile() -> Mapping[str, bytes]:
    """The beginning of the shipped one."""
    whole = profiles.read(ROOT / "scenarios" / "profiles" / "llama-3d.yaml")
    programs = tuple(replace(one, steps=whole.programs[0].steps[:6]) for one in whole.programs)
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "x.yaml"
        profiles.write(replace(whole, kernels=whole.kernels[:13], programs=programs), file)
        read_profile(file.parent)
        return {file.name: file.read_bytes()}


def read_profile(folder: Path) -> None:
    """A profile, edited by hand."""
    profiles.read(folder / "x.yaml")


def targets() -> list[Target]:
    """A target for each kind of folder or file."""
    found = [Folder(a_run(kind), read_run).target(f"run ({kind})") for kind in ("npz", "parquet")]
    found.append(Folder(an_unfinished_run(), read_unfinished).target("unfinished run"))
    found.append(Folder(a_profile(), read_profile).target("profile"))
    return found
