"""What a link delivers is at most its rate times the time, over any interval from a begin to an end."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import cosim
from cosim.cli import app
from cosim.engine.records import Records
from cosim.results.too_fast import too_fast

CONTROLS = ("dctcp", "cubic", "newreno", "swift", "timely", "hpcc", "dcqcn", "nscc", "rccc", "fixed")


def incast(control: str, senders: int, size: int, topology: dict[str, Any], **network: Any) -> Records:
    scenario = {
        "topology": topology,
        "network": {"model": "congestion", "control": control, **network},
        "fold": "never",
        "jobs": [
            {
                "workload": {
                    "kind": "periodic", "compute": "0ns", "size": size, "communication": "incast",
                    "ranks": senders + 1,
                }
            }
        ],
    }  # fmt: skip
    return cosim.run(scenario, messages=True).records


def switch(senders: int) -> dict[str, Any]:
    return {"kind": "switch", "endpoints": senders + 1, "rate": "100Gbps", "latency": "1us"}


@pytest.mark.parametrize("control", CONTROLS)
def test_an_incast_that_loses_packets_takes_its_bytes_over_the_rate(control: str) -> None:
    for senders, size in ((16, 100_000), (64, 100_000)):
        records = incast(control, senders, size, switch(senders), pfc=False)
        assert records.end_ps >= senders * size * 80


def test_the_default_that_lost_packets_and_was_too_fast() -> None:
    records = incast("dctcp", 64, 100_000, switch(64))
    assert records.links.extra["drops"].sum() > 100
    assert 512_000_000 <= records.end_ps <= 530_000_000


@pytest.mark.parametrize("seed", range(12))
def test_random_fabrics_that_drop_deliver_no_faster_than_links(seed: int) -> None:
    draw = random.Random(seed)
    senders = draw.choice((8, 16, 32))
    fabric = {
        "kind": "leaf_spine", "leaves": 4, "spines": draw.choice((1, 2)),
        "endpoints_per_leaf": senders // 4 + 1, "rate": "25Gbps", "latency": "500ns",
    }  # fmt: skip
    buffer = draw.choice(("30kB", "100kB"))
    records = incast(
        draw.choice(CONTROLS), senders, draw.choice((20_000, 100_000)), fabric, pfc=False, buffer=buffer
    )
    lost = sum(records.links.extra.get(name, np.zeros(1)).sum() for name in ("drops", "trims"))
    assert lost > 0
    assert too_fast(records) == []


def by_hand(begin: np.ndarray, end: np.ndarray, size: np.ndarray, rate: float) -> bool:
    """Whether any interval from a begin to an end has more in it than the rate allows."""
    for first, last in product(begin, end):
        inside = (begin >= first) & (end <= last)
        if inside.any() and size[inside].sum() > rate * (last - first):
            return True
    return False


@pytest.mark.parametrize("seed", range(40))
def test_the_check_finds_what_a_look_at_all_intervals_finds(seed: int) -> None:
    records = incast("fixed", 8, 100_000, switch(8))
    draw = np.random.default_rng(seed)
    messages = records.messages
    assert messages is not None
    begin = draw.integers(0, 50_000_000, len(messages.src))
    end = begin + draw.integers(8_000_000, draw.choice([60_000_000, 200_000_000]), len(begin))
    made = replace(records, end_ps=int(end.max()), messages=replace(messages, start_ps=begin, end_ps=end))
    size = messages.size_bytes - 1.0
    wrong = by_hand(begin.astype(float), end + 1000.0, size, 100e9 / 8e12)
    wrong |= bool((size > (end + 1000.0 - begin) * 100e9 / 8e12).any())
    assert bool(too_fast(made)) == wrong


def test_the_command_says_what_is_too_fast() -> None:
    ran = CliRunner().invoke(app, ["run", "scenarios/quickstart.yaml", "--check", "-q"])
    assert ran.exit_code == 0
    refused = CliRunner().invoke(
        app, ["run", "scenarios/quickstart.yaml", "--check", "--set", "network=congestion_unaware"]
    )
    assert refused.exit_code != 0
    records = incast("fixed", 8, 100_000, switch(8))
    assert records.messages is not None
    early = replace(records.messages, end_ps=records.messages.end_ps // 2)
    found = too_fast(replace(records, messages=early))
    assert [one.place for one in found] == ["switch0 -> npu0"]
    assert "800 kB came in" in str(found[0])
    assert "64 us at least" in str(found[0])
