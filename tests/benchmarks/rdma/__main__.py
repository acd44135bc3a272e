"""RDMA in ns-3: ``python -m tests.benchmarks.rdma [SECTION...]``

``cost``: CPU seconds for each simulated gigabyte and events for each packet, beside ns-3's TCP in the same
run. ``htsim``: mean completion times beside those of csg-htsim. ``authors``: completions, queues and pauses
beside the simulator of HPCC's authors. ``uet``: NSCC beside
Ultra Ethernet's. ``fluid``: the congestion network against it, flow by flow.
``forward``: what fast-forward saves of a training run, and its error. ``shared``: scenarios of jobs that
share links, by the fluid and by packets. ``large``: what large runs cost.
"""

from __future__ import annotations

import importlib
import sys

SECTIONS = ("cost", "htsim", "authors", "uet", "fluid", "forward", "shared", "large")

if __name__ == "__main__":
    wanted = sys.argv[1:] or list(SECTIONS)
    if unknown := set(wanted) - set(SECTIONS):
        sys.exit(f"no section {', '.join(sorted(unknown))}; there are {', '.join(SECTIONS)}")
    for name in wanted:
        print(importlib.import_module(f"tests.benchmarks.rdma.{name}").section(), flush=True)
