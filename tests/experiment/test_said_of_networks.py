"""What a page, a warning or an error says of what a network did not do."""

from __future__ import annotations

import dataclasses
import logging
from typing import Any

import numpy as np
import pytest

import cosim
from cosim.errors import StallError
from cosim.experiment.build import build
from cosim.experiment.scenario import loads
from cosim.experiment.simulate import simulate
from cosim.network.aware import CongestionAwareNetwork
from cosim.network.flows import Completions, FlowBatch
from cosim.network.forwarding import ForwardingNetwork
from cosim.network.simulator import Advance, Capabilities, NetworkStatistics
from cosim.results.render.loop_page import _why
from cosim.units import NEVER

TEXT = """
topology: {kind: ring, endpoints: 4, rate: 80Gbps, latency: 0ns}
network: NETWORK
jobs: [{workload: {kind: collective, collective: all_reduce, ranks: 4, size: 4MB}}]
"""
NONE: Any = [np.zeros(0, kind) for kind in (np.int32, np.int64, np.int64, np.int64, np.int64)]
FAILS = "{address: 'unix:/nowhere', failures: [{link: 0, down: 1us}, {link: 1, down: 1us, up: 2us}]}"


class Elsewhere(ForwardingNetwork):
    """As a simulator elsewhere that measures no busy times and releases nothing, and that may fall silent."""

    def __init__(self, *, silent: bool = False) -> None:
        super().__init__(CongestionAwareNetwork())
        self._silent = silent

    @property
    def elsewhere(self) -> bool:
        return True

    def describe(self) -> Capabilities:
        return dataclasses.replace(self.inner.describe(), dependent_flows=False)

    def advance(self, flows: FlowBatch, horizon_ps: int) -> Advance:
        if self._silent and horizon_ps == NEVER:
            return Advance(NEVER, Completions(*NONE))
        return self.inner.advance(flows, horizon_ps)

    def statistics(self) -> NetworkStatistics:
        found = self.inner.statistics()
        return dataclasses.replace(found, bin_ps=0, busy_ps=np.zeros((1, 8), np.int64))


def run(network: str = "congestion_aware", **kinds: Any) -> cosim.Run:
    scenario = loads(TEXT.replace("NETWORK", network))
    return simulate(scenario, dataclasses.replace(build(scenario), network=Elsewhere(**kinds)))


def test_busy_times_that_nobody_measured_are_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "cosim"):
        done = run()
    page = str(done)
    assert "the network did not measure how long they were busy" in page
    assert " 0.0 %" not in page
    assert "6 MB" in page
    assert "congestion_aware doesn't release messages that wait for others: the engine does" in caplog.text
    assert "release engine" in page
    assert done.digest == cosim.run(TEXT.replace("NETWORK", "congestion_aware")).digest


def test_a_stall_names_the_link_that_never_comes_back() -> None:
    with pytest.raises(StallError) as caught:
        run(FAILS, silent=True)
    said = str(caught.value)
    assert "the link npu0 -> npu1 fails at 1 us and never comes back" in said
    assert "npu1 -> npu0" not in said


def test_the_open_loop_is_not_explained_by_none_of_the_messages() -> None:
    assert "27% of the" in " ".join(_why(-0.13, 0.27))
    said = " ".join(_why(-0.13, 0.0))
    assert "It sent" not in said
    assert "they did in the recorded run" in said
    assert not [*_why(0.0, 0.0)]
