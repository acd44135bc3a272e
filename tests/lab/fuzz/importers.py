"""Readers of other programs' files, fed with damaged ones."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

import cosim
from cosim.context import Context
from cosim.files.folder import MANIFEST
from cosim.formats.chakra.read import ChakraWorkload, RemoteMemory
from cosim.formats.flow_list.read import FlowListWorkload
from cosim.formats.goal.read import GoalWorkload
from cosim.formats.htsim.read import HtsimWorkload
from cosim.formats.tables.read import CsvWorkload, ParquetWorkload
from tests.formats import topology_files
from tests.formats.msccl import programs
from tests.lab.fuzz.damage import damaged
from tests.lab.fuzz.tally import Inputs, Target, drawn
from tests.workload.layers import damaged_graphs

_SEEDS = """
topology: {kind: ring, endpoints: 4, rate: 400Gbps, latency: 500ns}
network: fair_share
collectives: {endpoint_delay: 10ns, all_reduce: direct}
jobs:
  - workload:
      kind: operations
      mesh: {dp: 2, tp: 2}
      programs:
        - operations:
            - {name: work, kind: compute, duration: 3us}
            - {name: sum, kind: collective, collective: all_reduce, size: 64KiB, axes: [tp], deps: [work]}
            - {name: all, kind: collective, collective: all_gather, size: 1KiB, deps: [sum]}
"""
_MEMORY = RemoteMemory.model_validate({"latency": "1ns", "rate": "50GB/s"})

READERS: dict[str, Callable[[Path], Any]] = {
    "chakra": lambda folder: ChakraWorkload(
        path="trace", comm_groups="comm_groups.json", memory=_MEMORY
    ).build(Context(folder)),
    "chakra-messages": lambda folder: ChakraWorkload(path="trace").build(Context(folder)),
    "goal": lambda folder: GoalWorkload(path="schedule.goal").build(Context(folder)),
    "htsim": lambda folder: HtsimWorkload(path="traffic.cm").build(Context(folder)),
    "flow-list": lambda folder: FlowListWorkload(path="flow.txt").build(Context(folder)),
    "csv": lambda folder: CsvWorkload(path=".").build(Context(folder)),
    "parquet": lambda folder: ParquetWorkload(path=".").build(Context(folder)),
}
"""Format -> its importer, on a folder that the format wrote."""


@cache
def written(name: str) -> Mapping[str, bytes]:
    """Valid files of a format."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        cosim.translate(cosim.loads(_SEEDS), name, folder)
        files = {file.name: file.read_bytes() for file in sorted(folder.iterdir()) if file.is_file()}
        del files["translation.json"], files[MANIFEST]
        READERS[name](folder)
    return files


class Folder:
    """A folder of valid files, of which an input replaces one."""

    def __init__(self, files: Mapping[str, bytes], read: Callable[[Path], Any]) -> None:
        self._place = Path(tempfile.mkdtemp(prefix="cosim-fuzz-"))
        weakref.finalize(self, shutil.rmtree, self._place, ignore_errors=True)
        self._files = files
        self._read = read
        self._names = sorted(files)
        for name, body in files.items():
            (self._place / name).write_bytes(body)

    def inputs(self) -> Inputs:
        """A file's name, and what is in it: its own bytes damaged, or now and then another's."""
        bodies = [*self._files.values()]

        def make(draw: Random) -> tuple[str, bytes]:
            name = draw.choice(self._names)
            return name, damaged(draw, [self._files[name]] if draw.random() < 0.9 else bodies)

        return drawn(make)

    def attempt(self, given: tuple[str, bytes]) -> object:
        """Read the folder with one file as given."""
        name, body = given
        file = self._place / name
        file.write_bytes(body)
        try:
            return self._read(self._place)
        finally:
            file.write_bytes(self._files[name])

    def target(self, name: str) -> Target:
        """All of it."""
        return Target(name, self.inputs(), self.attempt)


def targets() -> list[Target]:
    """A target for each format."""
    found = [Folder(written(name), read).target(name) for name, read in READERS.items()]
    graphs = "pipedream", [damaged_graphs.CHAIN, damaged_graphs.SEVERAL], damaged_graphs.cut
    for name, seeds, read in (*programs.fuzz_targets(), *topology_files.fuzz_targets(), graphs):
        found.append(Target(name, drawn(partial(damaged, bodies=seeds)), read))
    return found
