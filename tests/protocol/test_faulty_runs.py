"""Each fault of the kit, met by a run as `cosim run` does it: a named error, the right result, or what only
the kit can tell: a network that is consistently another one."""

import re
from collections.abc import Callable

import pytest

from cosim.errors import CosimError
from cosim.experiment.run import run
from cosim.experiment.scenario import loads
from cosim.network.aware import CongestionAwareNetwork
from cosim.protocol import settings
from cosim.protocol.server import Server
from cosim.testing.conformance import faulty_server as kit
from cosim.testing.conformance.faulty_network import model_for
from tests.cli.processes import PATIENCE_S
from tests.protocol.small_run import SCENARIO

SAME, OTHER = "the same result", "another result, in good order"
ENDS = {
    "version": "VersionError: .* speaks version 2.0 of the protocol; this is 1.0",
    "time_back": "ProtocolError: .* granted 361999999 ps; it may grant 362000000 to",
    "beyond_grant": "ProtocolError: .* granted|reported a completion",
    "unknown_id": "ProtocolError: .* completed flow 1099511627776, which is not open",
    "wrong_digest": "ProtocolError: .* has the digest",
    "split_instant": "ProtocolError: .* has the digest",
    "lost_bytes": "ProtocolError: .* statistics that don't fit",
    "slow": "DeadlineError: .* did not answer within 0.3 s",
    "frozen": "DeadlineError: .* did not answer within 0.3 s",
    "crash": "RefusedError: .* crashed",
    "no_latency": OTHER,
    "random": OTHER,
    "wrong_starts": "ProtocolError: .* started a flow before its time",
    "late_cause": "ProtocolError: .* was certain of a completion only after it",
}
"""Of faults that this run meets; all others leave it alone."""


@pytest.fixture(scope="module")
def right() -> str:
    return run(loads(SCENARIO)).digest


def _met(fault: str) -> object:
    """Of those that leave this run alone, two: which are the kit's to notice is its own test."""
    alone = fault not in {*ENDS, "deaf", "reorder"}
    return pytest.param(fault, marks=[pytest.mark.slow] * alone)


@pytest.mark.parametrize("fault", [_met(fault) for fault in kit.SERVER_FAULTS])
def test_a_run_over_a_faulty_server_ends_in_a_named_error_or_in_the_right_result(
    serve: Callable[..., Server],
    fault: str,
    right: str,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    monkeypatch.setattr(kit, "_FREEZE_S", 0.0)  # it freezes when it is left alone: here at once
    monkeypatch.setattr(settings, "_SHORTEST_PING_S", PATIENCE_S)  # that answers are late is what is told
    make, make_session = kit.faulty(fault)
    address = serve(make, make_session=make_session).address
    late = fault in ("slow", "frozen")
    network = {"address": address, "answer_timeout": "300ms" if late else "60s"}
    if not isinstance(model_for(fault), CongestionAwareNetwork):  # a fault that another model can have
        sound = {"address": serve(lambda: model_for(fault)).address}
        right = run(loads(SCENARIO, {"network": sound, "release": "engine"})).digest
    try:
        done = run(loads(SCENARIO, {"network": network, "release": "engine"}))
        came = SAME if done.digest == right else OTHER
    except CosimError as error:
        came = f"{type(error).__name__}: {error}"
    notice = f"cosim conformance fails {kit.SERVER_FAULTS[fault]}"
    ended = {SAME: f"not met by this run; {notice}", OTHER: f"a run can't tell; {notice}"}.get(came, came)
    record_property("fault", (f"faulty server: {fault}", ended.splitlines()[0][:110]))
    expected = ENDS.get(fault, SAME)
    assert came == expected or re.match(expected, came)
