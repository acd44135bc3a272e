"""The congestion network against RDMA in ns-3, flow by flow, on the 20 scenarios of ``ns3_congestion``.

Each port has its own room, in both. Flows start in ns-3 at their times, and once more up to 10 us later: no
model can be nearer than those two runs are to each other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cosim.context import HERE
from cosim.network.congestion.settings import Congestion
from tests.benchmarks.ns3_congestion import Case, fcts, others, seen
from tests.benchmarks.rdma.sessions import F64, packets

CONTROLS = ("dcqcn", "dctcp", "hpcc", "swift", "timely", "fixed")
"""All but MLTCP, at their defaults."""


@dataclass(frozen=True)
class Compared:
    """Completion times, us: the fluid's, ns-3's, and ns-3's with other starts."""

    fluid: F64
    packets: F64
    again: F64

    @property
    def errors(self) -> F64:
        """Of each flow, relative."""
        return np.asarray(np.abs(self.fluid / self.packets - 1))

    @property
    def floor(self) -> float:
        """Of ns-3 from itself, mean over flows."""
        return float(np.abs(self.again / self.packets - 1).mean())


def compare(control: str, case: Case) -> Compared:
    """Both, with the same settings."""
    fluid = Congestion.model_validate({"control": control, "mtu": case.mtu}).build(HERE)
    mine = fcts(fluid, case)
    fluid.close()
    one, again = (packets(control, case, seed, shared_buffer=False).us for seed in (None, 1))
    return Compared(mine, one, again)


def section() -> str:
    """Errors by control, and whether controls come in the same order."""
    from scipy.stats import spearmanr

    cases = [*seen(), *others()]
    rows = {case.name: [compare(control, case) for control in CONTROLS] for case in cases}
    lines = [
        "completion times of the congestion network against ns3_rdma:",
        "mean error over flows, and signed error of their mean",
        "",
        f"{'':<32}" + "".join(f"{name:>16}" for name in CONTROLS) + f"{'order':>8}",
    ]
    orders = []
    for name, row in rows.items():
        signed = [one.fluid.mean() / one.packets.mean() - 1 for one in row]
        order = float(
            spearmanr([one.fluid.mean() for one in row], [one.packets.mean() for one in row]).statistic
        )
        orders.append(order)
        cells = [f"{one.errors.mean():>8.1%}{error:>+8.1%}" for one, error in zip(row, signed, strict=True)]
        lines.append(f"{name:<32}" + "".join(cells) + f"{order:>8.2f}")
    for label, pick in (("mean", np.mean), ("worst flow", np.max)):
        values = [
            pick(np.concatenate([row[k].errors for row in rows.values()])) for k in range(len(CONTROLS))
        ]
        lines.append(f"{label:<32}" + "".join(f"{value:>8.1%}{'':>8}" for value in values))
    floors = [np.mean([row[k].floor for row in rows.values()]) for k in range(len(CONTROLS))]
    lines.append(f"{'ns-3 from itself':<32}" + "".join(f"{value:>8.1%}{'':>8}" for value in floors))
    lines.append(f"order of controls, Spearman: {np.mean(orders):.2f} in the mean")
    return "\n".join([*lines, ""])
