"""RDMA in ns-3: ``python -m tests.lab.benchmarks.rdma [SECTION...]``

``cost``: CPU seconds for each simulated gigabyte and events for each packet, beside ns-3's TCP in the same
run. ``htsim``: mean completion times beside those of csg-htsim. ``authors``: completions, queues and pauses
beside the simulator of HPCC's authors. ``uet``: NSCC beside
Ultra Ethernet's. ``fluid``: the congestion network against it, flow by flow; ``incasts`` of equal senders.
``forward``: what fast-forward saves of a training run, and its error. ``shared``: scenarios of jobs that
share links, by the fluid and by packets, ``unfair`` one of them over seeds. ``large``: what large runs cost.

``--kept FOLDER``: ``fluid`` keeps what packets make of its scenarios there, and runs only what it lacks.
"""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path

SECTIONS = ("cost", "htsim", "authors", "uet", "fluid", "incasts", "forward", "shared", "unfair", "large")


def main() -> None:
    """Print the sections that are asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.benchmarks.rdma")
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=", ".join(SECTIONS))
    parser.add_argument("--kept", type=Path, help="folder of packet runs for fluid")
    given = parser.parse_args()
    if unknown := set(given.sections) - set(SECTIONS):
        parser.error(f"no section {', '.join(sorted(unknown))}; there are {', '.join(SECTIONS)}")
    for name in given.sections or SECTIONS:
        section = importlib.import_module(f"tests.lab.benchmarks.rdma.{name}").section
        print(section(given.kept) if name == "fluid" else section(), flush=True)


if __name__ == "__main__":
    main()
