"""Readers of other programs' files, fed with damaged ones."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

import cosim
from cosim.context import Context
from cosim.formats.chakra.read import ChakraWorkload, RemoteMemory
from cosim.formats.flow_list.read import FlowListWorkload
from cosim.formats.goal.read import GoalWorkload
from cosim.formats.htsim.read import HtsimWorkload
from cosim.formats.tables.read import CsvWorkload, ParquetWorkload
from tests.formats import topology_files
from tests.formats.msccl import programs
from tests.fuzz.damage import damaged
from tests.fuzz.tally import Target

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
        files.pop("translation.json")
        READERS[name](folder)
    return files


def one_damaged(files: Mapping[str, bytes]) -> st.SearchStrategy[dict[str, bytes]]:
    """A folder of which one file is damaged."""
    bodies = [*files.values()]

    def folder(victim: str) -> st.SearchStrategy[dict[str, bytes]]:
        first = [files[victim], *bodies]
        return damaged(first[:1]).map(lambda body: {**files, victim: body}) | damaged(bodies).map(
            lambda body: {**files, victim: body}
        )

    return st.sampled_from(sorted(files)).flatmap(folder)


def in_folder(read: Callable[[Path], Any]) -> Callable[[Mapping[str, bytes]], object]:
    """``read``, given the files of a folder rather than the folder."""

    def attempt(files: Mapping[str, bytes]) -> object:
        with tempfile.TemporaryDirectory() as place:
            for name, body in files.items():
                (Path(place) / name).write_bytes(body)
            return read(Path(place))

    return attempt


def targets() -> list[Target]:
    """A target for each format."""
    found = [Target(name, one_damaged(written(name)), in_folder(read)) for name, read in READERS.items()]
    for name, seeds, read in (*programs.fuzz_targets(), *topology_files.fuzz_targets()):
        found.append(Target(name, damaged(seeds), read))
    return found
