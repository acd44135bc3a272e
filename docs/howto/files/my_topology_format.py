"""Cumulus' topology.dot: "leaf1":"swp1" -- "spine1":"swp1"."""

import re
from pathlib import Path

from pydantic import Field

from cosim.plugins import Cables, Rate, ReportBuilder, TopologyFormat

EDGE = re.compile(r'^\s*"([^"]+)":"[^"]+"\s*--\s*"([^"]+)":"[^"]+"')


class TopologyDot(TopologyFormat):
    """Cumulus' topology.dot: cables between ports, all of one rate"""

    speed: Rate = Field(100e9, description="of each cable")

    def refuses(self, start: str, path: Path) -> str | None:
        return None if any(map(EDGE.match, start.splitlines())) else 'it has no line "a":"x" -- "b":"y"'

    def read(self, path: Path, cables: Cables, report: ReportBuilder) -> None:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if edge := EDGE.match(line):
                cables.link(edge[1], edge[2], rate_bps=self.speed, line=number)
            elif line.strip() not in ("", "graph fabric {", "}"):
                report.ignored("line that is no cable")
