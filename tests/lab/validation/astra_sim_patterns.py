"""The same patterns three ways: our congestion-aware model, ASTRA-sim behind gRPC, ASTRA-sim on our export.

::

    ASTRASIM_ROOT=... python -m tests.lab.validation.astra_sim_patterns [--only SUBSTRING]

Each pattern is a scenario. It runs on ``congestion_aware`` in-process; on ``astrasim``, where ASTRA-sim's
network times each message; and as a whole in ASTRA-sim, from the Chakra traces and the configuration that
``cosim translate --to astra-sim`` writes. Compared is when each rank finished. Printed are ours, and the
largest difference of any rank from it, ns; each row beyond 1 ns says why. Exit status 0 if each is within
1 ns or explained, and at least 40 are within.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import yaml

import cosim
from cosim.experiment.translate import translate
from cosim.network.flows import I64
from cosim.units import PS_PER_NS
from tests.lab.validation.pattern_scenarios import Pattern, patterns

ENOUGH = 40
WITHIN_PS = PS_PER_NS


@dataclass(frozen=True)
class Outcome:
    """When each rank finished, ps, three ways."""

    pattern: Pattern
    messages: int
    ours: I64
    served: I64
    whole: I64
    losses: tuple[str, ...]

    @property
    def served_ps(self) -> int:
        """Largest difference between in-process and behind gRPC."""
        return int(np.abs(self.served - self.ours).max())

    @property
    def whole_ps(self) -> int:
        """Largest difference between in-process and ASTRA-sim on our export."""
        return int(np.abs(self.whole - self.ours).max())

    @property
    def matches(self) -> bool:
        """Within a nanosecond, all three."""
        return max(self.served_ps, self.whole_ps) <= WITHIN_PS

    def __str__(self) -> str:
        verdict = "same" if self.matches else self.pattern.why or "NOT EXPLAINED"
        return (
            f"{self.pattern.name:<60} {len(self.ours):>5} {self.messages:>8} {self.ours.max() / 1000:>12.1f} "
            f"{self.served_ps / 1000:>9g} {self.whole_ps / 1000:>9g}  {verdict}"
        )


HEADER = f"{'pattern':<60} {'ranks':>5} {'messages':>8} {'ours, ns':>12} {'gRPC':>9} {'ASTRA-sim':>9}"


def three_ways(pattern: Pattern, folder: Path) -> Outcome:
    """Run a pattern."""
    text = yaml.safe_dump(pattern.scenario | {"network": "congestion_aware"})
    scenario = cosim.loads(text, base=folder, name=pattern.name)
    ours = cosim.run(scenario)
    served = cosim.run(scenario, set={"network": "astrasim"})
    exported = translate(scenario, "astra-sim", folder / "export")
    losses = tuple(str(entry) for entry in exported.report.entries("lost", "approximated"))
    whole = exported.run(lambda _: None)
    finish = [np.concatenate(run.records.finish_ps) for run in (ours, served, whole)]
    return Outcome(pattern, ours.records.num_messages, finish[0], finish[1], finish[2], losses)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", metavar="SUBSTRING", default="", help="patterns whose name has this in it")
    given = parser.parse_args(arguments)
    chosen = [pattern for pattern in patterns() if given.only in pattern.name]
    print(HEADER)
    outcomes = []
    for pattern in chosen:
        with tempfile.TemporaryDirectory(prefix="cosim-") as folder:
            outcomes.append(three_ways(pattern, Path(folder)))
        print(outcomes[-1], flush=True)
        for loss in outcomes[-1].losses:
            print(f"    the export says: {loss}")
    matched = sum(outcome.matches for outcome in outcomes)
    unexplained = [o.pattern.name for o in outcomes if not o.matches and not o.pattern.why]
    print(f"{matched} of {len(outcomes)} patterns: all ranks within 1 ns, all three ways")
    print(f"not explained: {', '.join(unexplained) or 'none'}")
    return int(bool(unexplained) or (not given.only and matched < ENOUGH))


if __name__ == "__main__":
    sys.exit(main())
