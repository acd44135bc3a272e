"""Incasts of the fluid beside packets: senders of 4 MB each to one endpoint, each port with its own room.

The last completion, where all start in one instant, and its mean over eight starts up to 10 us later.
"""

from __future__ import annotations

import numpy as np

from cosim.context import HERE
from cosim.network.congestion.settings import Congestion
from tests.lab.benchmarks.ns3_congestion import MB, Case, fabric, fcts, incast
from tests.lab.benchmarks.rdma.kept import packets

CONTROLS = ("fixed", "swift", "timely", "hpcc")
SENDERS = (2, 4, 8, 12)
STARTS = 8


def _apart(control: str, mtu: int, senders: int, seeds: list[int | None]) -> float:
    """How much later the fluid's last completion is, of the means."""
    case = Case("", fabric(), incast(senders, 4 * MB), mtu=mtu)
    mine, theirs = [], []
    for seed in seeds:
        fluid = Congestion.model_validate({"control": control, "mtu": mtu}).build(HERE)
        mine.append(fcts(fluid, case, seed).max())
        fluid.close()
        theirs.append(packets(control, case, seed, None, shared_buffer=False).max())
    return float(np.mean(mine) / np.mean(theirs) - 1)


def section() -> str:
    """A row for each control and size of packets: in one instant, and over the starts."""
    lines = [
        "last completion of senders of 4 MB, the fluid beside packets: in one instant / eight starts",
        "",
    ]
    lines.append(f"{'':<16}" + "".join(f"{f'{senders} senders':>18}" for senders in SENDERS))
    for control in CONTROLS:
        for mtu in (1500, 9000):
            cells = (
                f"{_apart(control, mtu, senders, [None]):>+8.1%} /"
                f"{_apart(control, mtu, senders, [*range(1, STARTS + 1)]):>+7.1%}"
                for senders in SENDERS
            )
            lines.append(f"{f'{control}, {mtu}':<16}" + "".join(f"{cell:>18}" for cell in cells))
    return "\n".join([*lines, ""])
