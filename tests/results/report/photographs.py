"""Reports as a reader sees them: ``python -m tests.results.report.photographs FOLDER [PAGE ...]``.

Writes the reports of ten scenarios to a folder, and photographs each whole page on a desktop and on a phone;
with pages, photographs those: of another version, say.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.docs.site import WIDTHS, browser
from tests.inputs import ROOT

SCENARIOS = {
    "quickstart": (),
    "two-jobs": ("--alone",),
    "failures-54-days": (),
    "link-failure": (),
    "llama3-70b": (),
    "mltcp": ("--set", "record={queues: [left -> right], rates: [one, two], every: 100us, messages: true}"),
    "serving": ("--set", "only.rate=[400Gbps]"),
    "cluster-queue": (),
    "incast": ("--set", "only.senders=[8:1]", "--set", "only.control=[dctcp, swift, hpcc]"),
    "generate": (),
}
"""And the options that each is run with."""
MOST = 6000
"""Pixels of a page from its top."""


def pages(folder: Path) -> list[Path]:
    """Write the reports."""
    made = []
    for name, options in SCENARIOS.items():
        path = folder / f"{name}.html"
        scenario = ROOT / "scenarios" / f"{name}.yaml"
        command = [sys.executable, "-m", "cosim", "run", str(scenario), "-q", *options, "--report", str(path)]
        subprocess.run(command, check=True)
        made.append(path)
    return made


def photograph(path: Path) -> list[Path]:
    """Photograph a page on each width, from its top."""
    made = []
    for name, width in WIDTHS.items():
        with browser(width) as page:
            page.goto(path.resolve().as_uri())
            page.wait_for_selector("html[data-shown]")
            page.wait_for_timeout(500)
            high = min(MOST, page.evaluate("document.documentElement.scrollHeight"))
            page.set_viewport_size({"width": width, "height": high})
            page.wait_for_timeout(500)
            made.append(path.with_name(f"{path.stem}-{name}.png"))
            page.screenshot(path=str(made[-1]))
    return made


def main() -> None:
    """Write and photograph."""
    folder, *named = map(Path, sys.argv[1:])
    folder.mkdir(parents=True, exist_ok=True)
    for path in named or pages(folder):
        for photo in photograph(path):
            print(photo, flush=True)


if __name__ == "__main__":
    main()
