"""Circuits that move: closed forms of two phases that want other ones."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import cosim
from cosim.errors import InputError, NetworkError
from cosim.processes.circuits import assigned
from tests.inputs import ROOT

SCENARIO = yaml.safe_load((ROOT / "scenarios" / "circuits.yaml").read_text())
BOTH = [{"circuits": [[0, 1], [2, 3], [0, 2], [1, 3]]}]


def took_ms(size_b: str = "100MB", network: Any = "fair_share", **topology: Any) -> float:
    """The two phases; the first is of 100 MB."""
    scenario = yaml.safe_load(yaml.safe_dump(SCENARIO))
    for program in scenario["jobs"][0]["workload"]["programs"]:
        for operation in program["operations"]:
            operation["size"] = size_b if operation["name"] == "b" else operation["size"]
    done = cosim.run({**scenario, "network": network, "topology": {**scenario["topology"], **topology}})
    return done.records.end_ps / 1e9


@pytest.mark.parametrize(("size", "b"), [("100MB", 4.0), ("50MB", 2.0), ("300MB", 12.0)])
@pytest.mark.parametrize("moves", [0.0, 1.0, 2.5])
def test_circuits_that_move_take_both_phases_and_two_moves(size: str, b: float, moves: float) -> None:
    found = took_ms(size, reconfiguration=f"{moves}ms")
    assert found == pytest.approx(4.0 + b + 2 * moves, abs=0.025)  # two looks of 10 us, and latencies


@pytest.mark.parametrize(("size", "b"), [("100MB", 4.0), ("50MB", 2.0)])
def test_circuits_that_stay_take_twice_as_long_and_a_move_of_the_mean_breaks_even(
    size: str, b: float
) -> None:
    stays = took_ms(size, schedule=BOTH)
    assert stays == pytest.approx(2 * (4.0 + b), abs=0.005)
    assert took_ms(size, reconfiguration=f"{(4.0 + b) / 2}ms") == pytest.approx(stays, abs=0.025)


def test_a_schedule_is_gone_round() -> None:
    slots = [
        {"circuits": [[0, 1], [0, 1], [2, 3], [2, 3]], "hold": "3ms"},
        {"circuits": [[0, 2], [0, 2], [1, 3], [1, 3]], "hold": "2ms"},
    ]
    # 3 ms of a; 1 dark, 2 of b's circuits, 1 dark; 1 of a; 2 and 1 dark; 2 of b; 1, 3, 1; 2 of b.
    assert took_ms(schedule=slots) == pytest.approx(3 + 1 + 2 + 1 + 3 + 1 + 2 + 1 + 3 + 1 + 2, abs=0.005)


def test_an_opened_simulation_has_the_process_too() -> None:
    with cosim.open(SCENARIO) as sim:
        sim.run(until="9.99ms")
        assert not sim.jobs["phases"].is_through
        sim.run(until=sim.jobs["phases"].ended)
        assert sim.now == round(took_ms() * 1e9)


@given(st.integers(2, 8), st.integers(1, 3), st.data())
def test_nobody_has_more_circuits_than_ports_and_who_has_some_keeps_them(
    n: int, ports: int, data: Any
) -> None:
    pair = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda p: p[0] < p[1])
    first, then = data.draw(st.sets(pair)), data.draw(st.sets(pair))
    up = assigned({}, first, ports)
    to = assigned(up, then, ports)
    for found, wanted in ((up, first), (to, then)):
        used = Counter(end for pair, count in found.items() for end in pair for _ in range(count))
        assert max(used.values(), default=0) <= ports
        assert set(found) <= wanted
        # Nothing that somebody waits for is left over.
        assert not [p for p in wanted - set(found) if all(used[end] < ports for end in p)]
    assert all(to[p] == count for p, count in up.items() if p in then)


@pytest.mark.parametrize(
    ("topology", "said"),
    [
        ({"schedule": [{"circuits": [[0, 1]] * 3}]}, "gives endpoint 0 3 circuits, and it has 2 ports"),
        ({"schedule": [{"circuits": [[0, 4]]}]}, "two endpoints from 0 to 3"),
        ({"schedule": [{"circuits": [[0, 1]]}, {"circuits": [[0, 2]]}]}, "has no hold"),
        ({"schedule": []}, "schedule"),
    ],
)
def test_schedules_that_cant_be_are_refused(topology: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        took_ms(**topology)


def test_a_schedule_that_leaves_somebody_waiting_is_refused() -> None:
    with pytest.raises(InputError, match="gpu0 has something to send to gpu2, and no circuit"):
        took_ms(schedule=[{"circuits": [[0, 1], [2, 3]], "hold": "1ms"}])


def test_a_network_that_doesnt_say_who_sends_is_refused() -> None:
    with pytest.raises(NetworkError, match="doesn't say who has something to send"):
        took_ms(network="congestion_aware")
