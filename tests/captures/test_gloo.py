"""Real traffic: PyTorch's gloo on four hosts of the kernel's, captured, beside closed forms and a profile."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cosim
from cosim.captures.read import read_capture
from cosim.captures.traffic import TrafficCapture
from cosim.results.traffic.analysis import TrafficAnalysis, analyse_capture
from cosim.results.traffic.bytes_over_time import joined
from cosim.results.traffic.read import capture_of_messages
from tests.captures.four_hosts import RANKS, can_run
from tests.inputs import ROOT

HERE = Path(__file__).parent
ITERATIONS = 10
PARAMETER_BYTES = 4 * (512 * 1024 + 1024 + 1024 * 512 + 512)
"""Gradients of the model in gloo_ddp.py, in float32."""
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not can_run(), reason="takes root and iproute2"),
]


def captured(script: str, out: Path) -> TrafficAnalysis:
    pytest.importorskip("torch")
    words = [sys.executable, "-m", "tests.captures.four_hosts", str(out), str(HERE / script)]
    subprocess.run(words, check=True, cwd=ROOT, timeout=300)
    capture = read_capture(out)
    assert capture.transfers is not None
    numbers = [at for at, host in enumerate(capture.transfers.hosts) if host.startswith("10.0.0.")]
    inside = np.isin(capture.transfers.src, numbers) & np.isin(capture.transfers.dst, numbers)
    return analyse_capture(TrafficCapture("gloo", "pcap", capture.transfers.only(inside)))


def between_neighbours(analysis: TrafficAnalysis, most: int = RANKS) -> list[int]:
    """Bytes of the pairs that have most, ascending."""
    sent = analysis.pairs[analysis.pairs[:, 0] != analysis.pairs[:, 1], 2]
    return sorted(np.sort(sent)[-most:].tolist())


def bursts(analysis: TrafficAnalysis, pause_ps: int) -> list[int]:
    """Bytes of each burst of a megabyte or more, in order: transfers without a pause of ``pause_ps``."""
    found = analysis.transfers
    assert found is not None
    apart = found.only(found.src != found.dst)
    first, _ = joined(apart.start_ps, apart.end_ps, pause_ps)
    sent = np.bincount(np.searchsorted(first, apart.start_ps, side="right"), apart.size_bytes)
    return [int(size) for size in sent if size > 10**6]


def test_an_all_reduce_of_gloo_is_a_ring_of_the_bytes_that_a_ring_has(tmp_path: Path) -> None:
    found = captured("gloo_all_reduce.py", tmp_path / "ring.pcap")
    expected = 8 * 2 * (RANKS - 1) / RANKS * 256 * 1024
    assert between_neighbours(found) == pytest.approx([expected] * RANKS, rel=0.01)
    pattern, groups = found.parts[0].patterns[0]
    assert (pattern.name, len(pattern.order), groups) == ("ring", RANKS, 1)


def test_a_script_sends_what_its_profile_says(tmp_path: Path) -> None:
    found = captured("gloo_ddp.py", tmp_path / "ddp.pcap")
    profile = tmp_path / "job.yaml"
    words = [sys.executable, "-m", "cosim", "profile", str(HERE / "gloo_ddp.py"), "--world-size", str(RANKS)]
    subprocess.run([*words, "-o", str(profile)], check=True, timeout=300, cwd=tmp_path)
    done = cosim.run(
        {
            "topology": {"kind": "switch", "endpoints": RANKS, "rate": "10Gbps", "latency": "1us"},
            "network": "fair_share",
            "collectives": {"all_reduce": "ring"},
            "jobs": [{"workload": {"kind": "profile", "path": str(profile)}, "iterations": ITERATIONS}],
            "record": {"messages": "npz"},
        }
    )
    records = done.records
    assert records.messages is not None
    model = analyse_capture(
        capture_of_messages("profile", records.messages, records.topology.node_names, ["ddp"])
    )
    assert between_neighbours(found) == pytest.approx(between_neighbours(model), rel=0.02)
    # The script waits 500 ms before each iteration; a busy machine may take away some.
    captured_bursts, profiled = bursts(found, 400 * 10**9), bursts(model, 10**8)
    assert len(profiled) == ITERATIONS
    assert captured_bursts[-ITERATIONS:] == pytest.approx(profiled, rel=0.02)
    # What comes before are the parameters, which DDP sends from the first rank at its start.
    assert sum(captured_bursts[:-ITERATIONS]) == pytest.approx((RANKS - 1) * PARAMETER_BYTES, rel=0.02)
