"""What cosim wrote itself, damaged or edited by hand: runs, unfinished runs and their logs, profiles."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
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
from tests.fuzz.damage import damaged
from tests.fuzz.importers import in_folder, one_damaged
from tests.fuzz.tally import Target
from tests.inputs import ROOT
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


def targets() -> list[Target]:
    """A target for each kind of folder or file."""
    found = [
        Target(f"run ({kind})", one_damaged(a_run(kind)), in_folder(read_run)) for kind in ("npz", "parquet")
    ]
    found.append(Target("unfinished run", one_damaged(an_unfinished_run()), in_folder(read_unfinished)))
    bodies = [path.read_bytes() for path in sorted((ROOT / "scenarios" / "profiles").glob("*.yaml"))]
    read = in_folder(lambda folder: profiles.read(folder / "x.yaml"))
    found.append(Target("profile", damaged(bodies).map(lambda body: {"x.yaml": body}), read))
    return found
