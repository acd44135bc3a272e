"""What a simulator tells is held to what it was given: each rule by itself, with its times in the error."""

from typing import Any

import numpy as np
import pytest

from cosim.errors import ProtocolError
from cosim.network.flows import Completions, FlowBatch, FlowGroup, flat_table
from cosim.protocol.advance_answer import AdvanceAnswer
from cosim.protocol.injector import Injector
from cosim.protocol.v1 import network_simulator_pb2 as pb
from cosim.units import NEVER

GRANT, START = 1_000, 100
RIGHT = {"ids": [0, 1], "start": [START, START], "time": [900, GRANT], "cause": [900, GRANT]}
WRONG = [
    ("completed flow 7, which is not open", {"ids": [0, 7]}),
    ("completed flow -1, which is not open", {"ids": [0, -1]}),
    ("completed a flow twice", {"ids": [1, 1]}),
    ("a completion at 1001 ps with a grant of 1000 after one of 0", {"time": [900, 1001]}),
    ("started a flow before its time", {"start": [START, START - 1]}),
    ("or after its completion", {"start": [START, GRANT + 1]}),
    ("certain of a completion only after it", {"cause": [900, 1001]}),
    ("ran to 1000 ps past a reaction that could come at 999 ps", {"time": [900, 899], "cause": [900, 899]}),
]


def told(**other: list[int]) -> tuple[Injector, Completions]:
    """Two flows of a group, to which the client reacts after 100 ps, and what is told of them."""
    table = flat_table([0, 1], [1, 0], [8, 8], reaction_ps=100)
    group = FlowGroup(3, table, np.array([0, 1], np.int32), (5, 40), release="caller")
    start = np.full(2, START, np.int64)
    injector = Injector("it")
    injector.credit = 10
    injector.take(FlowBatch([group], np.full(2, 3, np.int32), np.arange(2), start, start))
    names = "id", "start_ps", "time_ps", "cause_ps"
    columns: dict[str, Any] = dict(zip(names, (RIGHT | other).values(), strict=True))
    answer = AdvanceAnswer()
    columns["id"] = [one % 2**64 for one in columns["id"]]
    advanced = pb.Advanced(granted_ps=GRANT, **columns)
    assert answer.read(pb.SessionResponse(advanced=advanced).SerializeToString())
    return injector, injector.finish(NEVER, answer)


def test_what_is_right_is_entered_by_what_it_is() -> None:
    injector, done = told()
    assert (done.handle.tolist(), done.index.tolist()) == ([3, 3], [0, 1])
    assert (injector.open_flows, injector.granted_ps) == (0, GRANT)
    again = told(ids=[1, 0], time=[GRANT, 900], cause=[GRANT, 900])[0]  # in another order: the same digest
    assert injector.digest == again.digest


@pytest.mark.parametrize(("message", "other"), WRONG)
def test_what_breaks_a_rule_is_refused_by_name(message: str, other: dict[str, list[int]]) -> None:
    with pytest.raises(ProtocolError, match=message):
        told(**other)
