"""An algorithm whose messages carry no chunks: what it claims to do can't be checked, and that is said."""

from __future__ import annotations

from pathlib import Path

import pytest

import cosim
from cosim.errors import RefutedError

HOLLOW = '''
from typing import ClassVar

import numpy as np

from cosim.plugins import COMPLETION, COPY, Algorithm, Block, Collective, assemble, entries, exits


class Hollow(Algorithm):
    """One byte to the next rank, which is no all-reduce"""

    name: ClassVar = "hollow"
    carries: ClassVar = frozenset({Collective.ALL_REDUCE})
    chunks: int = 0

    def build(self, collective, num_ranks, size_bytes, costs, *, reverse=False, chunk=0, root=0):
        rank = np.arange(num_ranks)
        before = (rank - 1) % num_ranks
        own = np.full((num_ranks, 1), num_ranks)
        more = {"chunk_count": 1, "action": COPY} if self.chunks else {}
        sends = Block(num_ranks, rank, (rank + 1) % num_ranks, own, (COMPLETION,), size_bytes=1, **more)
        ends = np.stack([np.full(num_ranks, 2 * num_ranks), num_ranks + rank - before], axis=1)
        blocks = [entries(num_ranks), sends, exits(num_ranks, ends, (COMPLETION, COMPLETION))]
        owner = np.zeros(self.chunks, np.int32)
        return assemble(
            self.name, collective, num_ranks, size_bytes, blocks, num_chunks=self.chunks, owner=owner
        )
'''
SCENARIO = """
topology: {kind: switch, endpoints: 4, rate: 400Gbps, latency: 1us}
network: fair_share
collectives: {all_reduce: {plugin: "hollow.py:Hollow"}}
jobs: [{workload: {kind: collective, collective: all_reduce, ranks: 4, size: 64MB}}]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "hollow.py").write_text(HOLLOW)
    (tmp_path / "s.yaml").write_text(SCENARIO)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_it_is_deadlock_free_and_no_more(folder: Path) -> None:
    del folder
    said = cosim.prove("{plugin: 'hollow.py:Hollow'}", "all_reduce", ranks=4)
    assert said.startswith("deadlock-free, data not checked: hollow, all_reduce over 4 ranks")
    assert "its messages carry no chunks" in said
    with pytest.raises(RefutedError):
        cosim.prove("{plugin: 'hollow.py:Hollow', chunks: 1}", "all_reduce", ranks=4)


def test_a_run_says_so(folder: Path) -> None:
    run = cosim.run(folder / "s.yaml")
    (warning,) = run.warnings
    (too_fast,) = map(str, run.doubts)
    assert "hollow is deadlock-free, but its data was not checked" in warning
    assert warning in str(run.summary)
    # 96 MB a rank in two microseconds.
    assert "a bus bandwidth of 384 Tbps over 4 ranks" in too_fast
    assert "no endpoint's links send more than 400 Gbps" in too_fast
    slow = cosim.run(folder / "s.yaml", set={"topology.latency": "1ms"})
    assert len(slow.warnings) == 1
    assert not slow.doubts  # 384 Gbps could be
    assert not cosim.run(folder / "s.yaml", set={"collectives.all_reduce": "ring"}).warnings
