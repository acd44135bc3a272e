"""Two names and a rate on each line, below a line that says so."""

from __future__ import annotations

from pathlib import Path

from cosim.plugins import Cables, ReportBuilder, TopologyFormat


class Lines(TopologyFormat):
    """Two names and a rate on each line"""

    def refuses(self, start: str, path: Path) -> str | None:
        return None if start.startswith("# cables") else "it doesn't begin with '# cables'"

    def read(self, path: Path, cables: Cables, report: ReportBuilder) -> None:
        for number, line in enumerate(path.read_text().splitlines()[1:], 2):
            one, two, rate = line.split()
            cables.link(one, two, rate_bps=float(rate) * 1e9, line=number)
