"""ns-3's own capture of a ring all-reduce, read as any capture is: its bytes, its period, its pattern."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from cosim.captures.read import read_capture
from cosim.results.traffic.analysis import analyse_capture
from tests.adapters.ns3_worlds import run_alone

RANKS, ITERATIONS, CHUNK, EVERY_PS = 4, 10, 200_000, 20_000_000_000
pytestmark = pytest.mark.slow


def ring(prefix: Path) -> Iterator[str]:
    """A session of ``cosim-ns3-alone``: ten all-reduces on a star, one each 20 ms, each of six steps."""
    yield "set mtu_bytes 1500"
    yield f"nodes {RANKS} {RANKS + 1}"
    for rank in range(RANKS):
        yield f"link {rank} {RANKS} 10000000000 1000000"
        yield f"link {RANKS} {rank} 10000000000 1000000"
    yield f"pcap {prefix}"
    yield "open"
    for rank in range(RANKS):
        yield f"path {rank} {(rank + 1) % RANKS} 0 {2 * rank} {2 * ((rank + 1) % RANKS) + 1}"
    steps = 2 * (RANKS - 1)
    for number in range(ITERATIONS * steps * RANKS):
        iteration, step, rank = map(int, np.unravel_index(number, (ITERATIONS, steps, RANKS)))
        # What a rank sends came from its left neighbour the step before.
        came = number - RANKS - rank + (rank - 1) % RANKS
        when = f"{iteration * EVERY_PS} 0" if step == 0 else f"-1 0 c{came}"
        yield f"flow 0 {number} {rank} {(rank + 1) % RANKS} {CHUNK} 0 {when}"


def test_a_capture_of_ns3_has_the_bytes_and_the_period_of_its_ring(tmp_path: Path) -> None:
    said = run_alone("\n".join(ring(tmp_path / "ring")) + "\n")
    assert said["completions"] == ITERATIONS * 2 * (RANKS - 1) * RANKS
    for rank in range(RANKS):
        found = analyse_capture(read_capture(tmp_path / f"ring-{rank}-1.pcap"))
        sent = sorted(found.pairs[:, 2].tolist())[-2:]  # its own, and its left neighbour's
        assert sent == pytest.approx([ITERATIONS * 2 * (RANKS - 1) * CHUNK] * 2, rel=0.03)
        assert found.parts[0].periods[0].period_ps == pytest.approx(EVERY_PS, rel=0.01)
