"""Counters of two leaf switches of a real cluster: sums, ports in use, and which ports are one job's.

Zhejiang Lab LLM Trace Program, 2024, CC BY 4.0, github.com/zhejianglab/Zhejiang-Lab-Cluster-Traces.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cosim.captures.read import read_capture
from cosim.results.traffic.ports import PortAnalysis, analyse_ports
from tests.inputs import find, needs

LEAVES = ("01", "14")
pytestmark = needs(*(f"measured/traffic/leaf_{leaf}.npz" for leaf in LEAVES))


def analysis() -> PortAnalysis:
    ports = [
        replace(port, name=f"{leaf} {port.name}")
        for leaf in LEAVES
        for port in read_capture(find(f"measured/traffic/leaf_{leaf}.npz")).ports
    ]
    return analyse_ports(ports)


def test_what_comes_in_goes_out() -> None:
    for leaf, terabytes in zip(LEAVES, (464.7, 535.4), strict=True):
        found = analyse_ports(read_capture(find(f"measured/traffic/leaf_{leaf}.npz")).ports)
        into = int(found.in_bytes.sum()) - found.gap_bytes[0]
        out = int(found.out_bytes.sum()) - found.gap_bytes[1]
        assert into == pytest.approx(out, rel=1e-5)
        assert into / 1e12 == pytest.approx(terabytes, abs=0.05)
        with np.load(find(f"measured/traffic/leaf_{leaf}.npz")) as stored:
            assert sum(int(stored[name][1, 1:].sum()) for name in stored.files) == int(found.in_bytes.sum())


def test_jobs_are_ports_of_equal_rates_and_no_gap_is_a_burst() -> None:
    found = analysis()
    assert (found.num_busy, len(found.names)) == (122, 190)
    jobs = [(len(group.ports), round(group.in_bps / 1e9, 1)) for group in found.groups[:3]]
    assert jobs == [(24, 21.8), (16, 68.9), (7, 29.4)]
    assert all(group.spread < 1e-3 for group in found.groups)
    assert [round(gap / 1e12) for gap in found.gap_ps] == [254, 253]
    assert float(found.peak_bps.max()) < 400e9
