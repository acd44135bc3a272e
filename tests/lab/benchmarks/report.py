"""Sizes and times of reports: ``python -m tests.lab.benchmarks.report [NAME ...]``.

Runs of nothing, 16, 256, 1,024 and 2,048 ranks, 16,384 folded, and one of 2 million messages that are all
kept.
Each in a process of its own: CPU-seconds and most memory of making the page from a run in memory (of the
process, less what the run itself took), bytes of the file, and in headless Chromium the time to the first
paint, until the answer and until all is drawn, and the page's memory. Without Chromium or playwright, the
first three.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.docs import site
from tests.lab.benchmarks.scale import A100, FABRIC, JOBS, scenario
from tests.results.report.test_first_screen import LARGE

EMPTY = """
topology: {kind: ring, endpoints: 2, rate: 80Gbps, latency: 0ns}
network: fair_share
jobs: [{workload: {kind: collective, collective: all_reduce, ranks: 2, size: 4MB}}]
"""
MANY = """
topology: {kind: switch, endpoints: 128, rate: 400Gbps, latency: 500ns}
network: congestion_unaware
collectives: {all_to_all: direct}
jobs: [{workload: {kind: collective, collective: all_to_all, ranks: 128, size: 16MB, repeat: 123}}]
"""
_A_STAGE = "{kind: model, model: gpt3-3.6b, gpu: a100-80gb, parallel: {tp: 8, pp: 2, dp: 16}, batch: 64}"
RUNS = {
    "empty": (EMPTY, False),
    "16": ("scenarios/quickstart.yaml", False),
    "256": (scenario(FABRIC.format(leaves=8, ports=32, **A100), _A_STAGE, "never"), False),
    "1024": (scenario(*JOBS["gpt3-175b-1024"], "never"), False),
    "2048": (LARGE, False),
    "16384-folded": (scenario(*JOBS["llama3-405b-16384"]), False),
    "2M-messages": (MANY, True),
}
"""What is run, and whether every message is kept."""


def measure(name: str, path: Path) -> dict[str, Any]:
    """Run one here, and write its page."""
    import cosim

    text, messages = RUNS[name]
    run = cosim.run(text, messages=messages)
    assert run.summary.jobs
    before, cpu = _peak_mb(), time.process_time()
    written = run.report().save(path)
    return {
        "ranks": sum(job.num_ranks for job in run.summary.jobs),
        "messages": run.records.num_messages,
        "operations": len(run.records.ops),
        "bytes": written.stat().st_size,
        "cpu_s": time.process_time() - cpu,
        "peak_mb": _peak_mb(),
        "run_peak_mb": before,
    }


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def opened(path: Path) -> dict[str, Any]:
    """First paint, answer and all drawn, in ms, and memory of scripts, in MB; nothing without a browser."""
    if site.missing_browser():
        return {}
    with site.browser(1440) as page:
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-shown]")
        page.wait_for_timeout(300)
        told = page.evaluate(
            "[performance.getEntriesByName('first-contentful-paint')[0]?.startTime,"
            " performance.getEntriesByName('answered')[0]?.startTime,"
            " performance.getEntriesByName('shown')[0]?.startTime]"
        )
        metrics = page.context.new_cdp_session(page)
        metrics.send("Performance.enable")
        found = {one["name"]: one["value"] for one in metrics.send("Performance.getMetrics")["metrics"]}
    return {
        "first_paint_ms": told[0],
        "answer_ms": told[1],
        "shown_ms": told[2],
        "scripts_mb": found["JSHeapUsedSize"] / 1e6,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure each in a process of its own, print a line for each."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.benchmarks.report", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("names", nargs="*", default=list(RUNS), help=f"some of {', '.join(RUNS)}")
    parser.add_argument("--here", type=Path, metavar="FILE", help="one, in this process; prints JSON")
    given = parser.parse_args(arguments)
    if given.here is not None:
        print(json.dumps(measure(given.names[0], given.here)))
        return
    for name in given.names:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "report.html"
            program = [sys.executable, "-m", "tests.lab.benchmarks.report", "--here", str(path), name]
            done = subprocess.run(program, stdout=subprocess.PIPE, check=True, text=True)
            row = json.loads(done.stdout) | opened(path)
        shown = (
            f"{key} {value:,.2f}" if isinstance(value, float) else f"{key} {value:,}"
            for key, value in row.items()
            if value is not None
        )
        print(f"{name}: {', '.join(shown)}", flush=True)


if __name__ == "__main__":
    main()
