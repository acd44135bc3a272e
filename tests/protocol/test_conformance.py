"""The kit passes what is right, and names what is wrong: each fault fails its own check, and no other."""

import sys
from collections.abc import Callable
from functools import partial

import pytest

from cosim.network.aware import CongestionAwareNetwork
from cosim.network.fair_share import FairShareNetwork
from cosim.network.unaware import CongestionUnawareNetwork
from cosim.protocol.server import Server
from cosim.testing import check_network, check_server
from cosim.testing.conformance import faulty_server, server_rules
from cosim.testing.conformance.faulty_network import model_for
from cosim.testing.conformance.faulty_server import SERVER_FAULTS, faulty
from cosim.testing.conformance.kit import check_names
from tests.cli.processes import PATIENCE_S


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    """Loops are compiled before a server is asked: the first time, that may take longer than any deadline."""
    queued = partial(model_for, "forgotten_queue")
    for make in (CongestionAwareNetwork, CongestionUnawareNetwork, FairShareNetwork, queued):
        check_network(make, only=["latency", "peek"])


@pytest.mark.parametrize("make", [CongestionAwareNetwork, FairShareNetwork])
def test_the_built_in_networks_pass(
    serve: Callable[..., Server], make: Callable[[], CongestionAwareNetwork]
) -> None:
    report = check_server(serve(make).address, deadline_s=PATIENCE_S)
    assert report.passed, str(report)


def test_a_network_without_congestion_fails_what_it_does_not_model(serve: Callable[..., Server]) -> None:
    assert check_server(
        serve(CongestionUnawareNetwork).address, deadline_s=PATIENCE_S
    ).failed == (
        "shares", "order", "ties", "merge",
    )  # fmt: skip


@pytest.mark.parametrize("fault", SERVER_FAULTS)
def test_each_fault_fails_its_check(
    serve: Callable[..., Server], fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fails_exactly(serve, fault, monkeypatch, [SERVER_FAULTS[fault]])


@pytest.mark.slow
@pytest.mark.parametrize("fault", [one for one in SERVER_FAULTS if one not in ("frozen", "deaf")])
def test_each_fault_fails_no_other_check(
    serve: Callable[..., Server], fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fails_exactly(serve, fault, monkeypatch, [])


def fails_exactly(
    serve: Callable[..., Server], fault: str, monkeypatch: pytest.MonkeyPatch, only: list[str]
) -> None:
    make, make_session = faulty(fault)
    if fault != "frozen":  # to no other is it of interest how long a session is left alone
        monkeypatch.setattr(server_rules, "_IDLE_S", 0.0)
    # The frozen one is waited for in vain; it freezes whenever it is left alone for a while.
    deadline_s = 2.0 if fault == "frozen" else PATIENCE_S
    if fault == "deaf":  # only a process can be sent a signal
        command = [sys.executable, "-m", faulty_server.__name__, "--fault", fault]
        assert check_server(command, only=["sigterm"]).failed == ("sigterm",)
        return
    report = check_server(serve(make, make_session=make_session).address, deadline_s=deadline_s, only=only)
    assert report.failed == (SERVER_FAULTS[fault],), str(report)


def test_every_check_has_a_fault_that_it_notices() -> None:
    assert {*check_names("server")} == {*SERVER_FAULTS.values()}
