"""Messages that reach a link at the same instant: ASTRA-sim's event list says who is first.

The times are those that its congestion-aware backend gave for the same operations.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from cosim import loads, run

ONE_BYTE_PER_NS = 1e9 / 2**30  # ASTRA-sim's GB/s


def finish_us(kind: str, *programs: list[dict[str, Any]], release: str = "network") -> list[float]:
    """When each rank ends, on a 4-NPU network of 1 byte/ns and 1 us a hop."""
    scenario = {
        "topology": {
            "kind": "astra_sim",
            "topology": [kind],
            "npus_count": [4],
            "bandwidth": [ONE_BYTE_PER_NS],
            "latency": [1000.0],
        },
        "network": "congestion_aware",
        "release": release,
        "jobs": [
            {
                "workload": {
                    "kind": "operations",
                    "world_size": 4,
                    "programs": [{"ranks": [r], "operations": ops} for r, ops in enumerate(programs)],
                }
            }
        ],
    }
    done = run(loads(yaml.safe_dump(scenario), base=Path()))
    return [int(ps) / 1e6 for ps in done.records.finish_ps[0]]


def compute(name: str, us: int, *deps: str) -> dict[str, Any]:
    return {"name": name, "kind": "compute", "duration": f"{us}us", "deps": list(deps)}


def send(name: str, peer: int, tag: int, *deps: str) -> dict[str, Any]:
    return {"name": name, "kind": "send", "peer": peer, "size": 1000, "tag": tag, "deps": list(deps)}


def recv(peer: int, tag: int) -> dict[str, Any]:
    return {"name": f"from {peer}", "kind": "recv", "peer": peer, "size": 1000, "tag": tag}


@pytest.mark.parametrize("release", ["network", "engine"])
@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ((3, 1), [6.0, 7.0]),  # the message on its way was certain at 2 us, the computation's end at 3
        ((1, 3), [7.0, 6.0]),  # ... at 1
        ((2, 2), [6.0, 7.0]),  # ... at 2 as well: the lower endpoint
    ],
)
def test_what_was_certain_first_goes_first(
    parts: tuple[int, int], expected: list[float], release: str
) -> None:
    """Rank 0's message to rank 2 passes rank 1 at 4 us, when rank 1 ends its computation and sends too."""
    first, second = parts
    ends = finish_us(
        "Ring",
        [compute("before", 2), send("far", 2, 0, "before")],
        [compute("a", first), compute("b", second, "a"), send("near", 2, 1, "b")],
        [recv(0, 0), recv(1, 1)],
        [compute("alone", 1)],
        release=release,
    )
    assert ends[:2] == expected
    assert ends[2] == 7.0


def test_of_two_that_were_certain_together_the_lower_endpoint_goes_first() -> None:
    """Rank 2's and rank 3's messages meet at rank 0's downlink; rank 2's operation has the higher number."""
    ends = finish_us(
        "Switch",
        [recv(2, 0), recv(3, 0)],
        [compute("alone", 1)],
        [compute("beside", 1), send("second", 0, 0)],
        [send("first", 0, 0)],
    )
    assert ends == [5.0, 1.0, 4.0, 5.0]
