"""Messages of one channel that start at one instant: by cause and key in one round, behind earlier rounds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from cosim.network.aware import CongestionAwareNetwork
from cosim.network.fair_share import FairShareNetwork
from cosim.network.flows import FlowBatch, FlowGroup, flat_table
from cosim.network.simulator import NetworkSimulator
from cosim.testing.conformance.cases import star

SIZE = 125_000
"""100 us at 10 Gb/s."""
MODELS: list[Callable[[], NetworkSimulator]] = [CongestionAwareNetwork, FairShareNetwork]


def group(key: int) -> FlowGroup:
    """A message to oneself, which takes no time, and one to the other, on one channel for all groups."""
    table = flat_table([0, 0], [0, 1], [1, SIZE])
    return FlowGroup(key, table, np.arange(2, dtype=np.int32), (0, key << 8))


def batch(groups: list[FlowGroup], starts: list[tuple[int, int]]) -> FlowBatch:
    """Starts at 0 of (handle, flow)."""
    handle, index = (np.array(column, np.int64) for column in zip(*starts, strict=True))
    zero = np.zeros(len(starts), np.int64)
    return FlowBatch(groups, handle.astype(np.int32), index, zero, zero)


def order(network: NetworkSimulator, granted: int) -> list[int]:
    """Handles of the long messages, as they arrive."""
    found: list[int] = []
    while len(found) < 2:
        granted, done = network.advance(FlowBatch(), granted + 10**10)
        found += done.handle[done.index == 1].tolist()
    return found


@pytest.mark.parametrize("make", MODELS)
@pytest.mark.parametrize("posted", [[2, 1], [1, 2]])
def test_in_one_round_the_lower_operation_goes_first(
    make: Callable[[], NetworkSimulator], posted: list[int]
) -> None:
    network = make()
    network.open(star(2))
    granted, _ = network.advance(batch([group(1), group(2)], [(one, 1) for one in posted]), 1)
    assert order(network, granted) == [1, 2]


@pytest.mark.parametrize("make", MODELS)
def test_a_later_round_of_the_instant_goes_behind(make: Callable[[], NetworkSimulator]) -> None:
    network = make()
    network.open(star(2))
    granted, done = network.advance(batch([group(1), group(2)], [(2, 0), (2, 1)]), 10**10)
    assert (granted, done.index.tolist()) == (0, [0])  # the round's end: what is to oneself has arrived
    granted, _ = network.advance(batch([], [(1, 1)]), 1)
    assert order(network, granted) == [2, 1]
