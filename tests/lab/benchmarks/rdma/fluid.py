"""The congestion network against RDMA in ns-3, flow by flow, on the 20 scenarios of ``ns3_congestion``.

Each port has its own room, in both. Flows start up to 10 us later than said, drawn anew four times, the same
in both; what is compared are means over those four, as controls like DCQCN and TIMELY are as far from
themselves at another start as the model may be from them. ns-3 from itself: one start from the mean of the
others, which no model of the same scenario can be much nearer to.

Packets take most of the time: ``python -m tests.lab.benchmarks.rdma fluid --kept FOLDER`` keeps their
completion times there, and takes those that it finds.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cosim.context import HERE
from cosim.network.congestion.settings import Congestion
from tests.lab.benchmarks.ns3_congestion import Case, fcts, others, seen
from tests.lab.benchmarks.rdma.kept import F64, packets

CONTROLS = ("dcqcn", "dctcp", "hpcc", "swift", "timely", "fixed")
"""All but MLTCP, at their defaults."""
SEEDS = (1, 2, 3, 4)


@dataclass(frozen=True)
class Compared:
    """Completion times, us, [starts, flows]: the fluid's and ns-3's."""

    fluid: F64
    packets: F64

    @property
    def errors(self) -> F64:
        """Of each flow's mean, relative."""
        return np.asarray(np.abs(self.fluid.mean(axis=0) / self.packets.mean(axis=0) - 1))

    @property
    def signed(self) -> float:
        """Of the mean of all flows."""
        return float(self.fluid.mean() / self.packets.mean() - 1)

    @property
    def floor(self) -> float:
        """Of ns-3 from itself, mean over flows and starts."""
        others = (self.packets.sum(axis=0) - self.packets) / (len(self.packets) - 1)
        return float(np.abs(self.packets / others - 1).mean())


def compare(control: str, case: Case, kept: Path | None = None) -> Compared:
    """Both, with the same settings and starts; ``kept``: where runs of packets are."""
    mine, theirs = [], []
    for seed in SEEDS:
        fluid = Congestion.model_validate({"control": control, "mtu": case.mtu}).build(HERE)
        mine.append(fcts(fluid, case, seed))
        fluid.close()
        theirs.append(packets(control, case, seed, kept, shared_buffer=False))
    return Compared(np.array(mine), np.array(theirs))


def section(kept: Path | None = None) -> str:
    """Errors by control, and whether controls come in the same order."""
    from scipy.stats import spearmanr

    cases = [*seen(), *others()]
    rows = {case.name: [compare(control, case, kept) for control in CONTROLS] for case in cases}
    lines = [
        "completion times of the congestion network against ns3_rdma:",
        "means of four starts: mean error over flows, and signed error of their mean",
        "",
        f"{'':<32}" + "".join(f"{name:>16}" for name in CONTROLS) + f"{'order':>8}",
    ]
    orders = []
    for name, row in rows.items():
        order = float(
            spearmanr([one.fluid.mean() for one in row], [one.packets.mean() for one in row]).statistic
        )
        orders.append(order)
        cells = [f"{one.errors.mean():>8.1%}{one.signed:>+8.1%}" for one in row]
        lines.append(f"{name:<32}" + "".join(cells) + f"{order:>8.2f}")
    for label, pick in (("mean", np.mean), ("worst flow", np.max)):
        values = [
            pick(np.concatenate([row[k].errors for row in rows.values()])) for k in range(len(CONTROLS))
        ]
        lines.append(f"{label:<32}" + "".join(f"{value:>8.1%}{'':>8}" for value in values))
    floors = [np.mean([row[k].floor for row in rows.values()]) for k in range(len(CONTROLS))]
    lines.append(f"{'ns-3 from itself':<32}" + "".join(f"{value:>8.1%}{'':>8}" for value in floors))
    lines.append(f"order of controls, Spearman: {np.mean(orders):.2f} on average")
    return "\n".join([*lines, ""])
