"""A log replayed in a few calls comes to where it ends, wherever that is."""

from collections.abc import Callable
from pathlib import Path

import pytest

from cosim.network.aware import CongestionAwareNetwork
from cosim.network.fair_share import FairShareNetwork
from cosim.network.simulator import NetworkSimulator
from cosim.protocol.client import connect
from cosim.protocol.replay_log import LoggedAdvance, LogReader
from cosim.protocol.replay_plan import ReplayPlan, as_recorded, few_advances
from cosim.protocol.server import Server
from tests.protocol.small_run import run

ROOM = 1 << 18


@pytest.mark.parametrize(
    ("make", "release"),
    [(CongestionAwareNetwork, "network"), (CongestionAwareNetwork, "engine"), (FairShareNetwork, "network")],
)
def test_a_log_cut_anywhere_is_replayed_in_a_few_calls(
    serve: Callable[..., Server], tmp_path: Path, make: Callable[[], NetworkSimulator], release: str
) -> None:
    address = serve(make).address
    network = connect(address)
    network.log_to(tmp_path / "log")
    run(network, release)
    log = LogReader(tmp_path / "log")
    exchanges = list(log.exchanges())

    def calls(to: ReplayPlan) -> int:
        again = connect(address).session
        again.describe()
        again.open(log.opened)
        assert again._replay(to) == (to.granted_ps, to.digest)
        again.close()
        return again.replays

    for end in range(1, len(exchanges) + 1, 9):
        assert calls(few_advances(exchanges[:end], ROOM)) <= 1 + rounds(exchanges[:end])
        assert calls(few_advances(exchanges[:end], 60)) >= 1
    assert calls(as_recorded(exchanges)) >= len(exchanges)


def rounds(exchanges: list[LoggedAdvance]) -> int:
    """How many answers granted no more than the one before them, at the end."""
    from cosim.protocol.v1 import network_simulator_pb2 as pb

    grants = [pb.SessionResponse.FromString(one.answers[-1]).advanced.granted_ps for one in exchanges]
    return 2 * sum(grant == grants[-1] for grant in grants)
