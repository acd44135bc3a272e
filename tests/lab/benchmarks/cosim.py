"""What co-simulation costs and how well it tells: ``python -m tests.lab.benchmarks.cosim [SECTION ...]``.

Each section is a module with ``section() -> str``: a table, and what it means. Without arguments all run.
"""

from __future__ import annotations

import importlib
import sys
import time

SECTIONS = {
    "echo": "tests.lab.benchmarks.echo",
    "loop": "tests.lab.benchmarks.ns3_loop",
    "fidelity": "tests.lab.benchmarks.ns3_fidelity",
    "mltcp": "tests.lab.benchmarks.ns3_mltcp",
    "faults": "tests.lab.benchmarks.faults",
}


def main(names: list[str]) -> None:
    """Run sections and print what they say."""
    unknown = [name for name in names if name not in SECTIONS]
    if unknown:
        sys.exit(f"no section {', '.join(unknown)}; there are: {', '.join(SECTIONS)}")
    for name in names or SECTIONS:
        began = time.perf_counter()
        text = importlib.import_module(SECTIONS[name]).section()
        print(f"== {name} ({time.perf_counter() - began:.0f} s)\n\n{text}\n", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
