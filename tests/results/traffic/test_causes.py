"""What logs and counters say together, of ports that are made up: six that carry alike, and some changed."""

from __future__ import annotations

import numpy as np
import pytest

from cosim.captures.traffic import I64, PortCounters
from cosim.results.traffic.causes import COLLISION, LINK, NIC, SlowCause, find_cause
from cosim.results.traffic.logged import LoggedAnalysis, SlowGroup, SlowRank
from cosim.results.traffic.ports import PortAnalysis, analyse_ports

BURST = np.array([0, 10**9, 0, 0] * 20)
LONG = np.array([0, 5 * 10**8, 5 * 10**8, 0] * 20)
MORE = 2 * BURST
NONE = 0 * BURST


def ports(**changed: tuple[I64, I64]) -> PortAnalysis:
    """Samples of 0.1 s: in and out of ports a to f; a burst where they aren't ``changed``."""
    at = np.arange(1, len(BURST) + 1) * 10**11
    given = {name: changed.get(name, (BURST, BURST)) for name in "abcdef"}
    return analyse_ports([PortCounters(name, at, *both) for name, both in given.items()])


def logs(*groups: str, late: str = "") -> LoggedAnalysis:
    """Communicators of processes by letters that are slow, and processes that are late."""
    slow = tuple(SlowGroup(name, tuple(name), "AllReduce", 2.0) for name in groups)
    return LoggedAnalysis((), 0, tuple(SlowRank(one, 0.9, 10**6) for one in late), slow)


def place(found: SlowCause | None) -> tuple[str, str] | None:
    return None if found is None else (found.kind, found.place)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"c": (LONG, LONG)}, (LINK, "c")),
        ({"c": (LONG, BURST), "d": (BURST, LONG)}, None),
        ({"c": (LONG, LONG), "d": (LONG, LONG)}, None),
        ({}, None),
        ({"b": (BURST, MORE), "e": (MORE, BURST), "f": (NONE, BURST)}, (COLLISION, "b")),
        ({"e": (MORE, BURST), "f": (NONE, BURST)}, (COLLISION, "e")),
        ({"e": (MORE, MORE)}, None),
    ],
    ids=["both ways", "one way", "two links", "alike", "out of one", "into one", "another job's"],
)
def test_ports_tell_a_link_from_a_collision(
    changed: dict[str, tuple[I64, I64]], expected: tuple[str, str] | None
) -> None:
    assert place(find_cause(logs("xyz"), ports(**changed))) == expected
    # Where no communicator is slow, uneven ports are no cause.
    assert find_cause(logs(), ports(**changed)) is None


@pytest.mark.parametrize("changed", [{}, {"c": (LONG, LONG)}])
def test_communicators_that_share_one_process_have_a_slow_nic(
    changed: dict[str, tuple[I64, I64]],
) -> None:
    assert place(find_cause(logs("xyz", "vwx"), ports(**changed))) == (NIC, "x")


def test_of_two_late_ranks_none_is_the_cause() -> None:
    assert find_cause(logs(late="xy"), ports()) is None
    found = find_cause(logs(late="x"), ports())
    assert found == SlowCause("slow rank", "x", "the last in 90.0 % of its collectives")
