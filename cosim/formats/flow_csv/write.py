"""Format ``flows``: the messages of a run of ours as flow records, a CSV that ``cosim analyse`` reads."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import ClassVar

import numpy as np
from pydantic import Field

from cosim.translation.contract import Progress
from cosim.translation.loss_report import LossReport
from cosim.translation.message_level import OpenLoop
from cosim.translation.source import Source
from cosim.units import PS_PER_NS


class FlowsFormat(OpenLoop):
    """Flow records as CSV: source, destination, bytes, start and end, at the times of a run of ours"""

    goes: ClassVar[str] = "each flow has"

    file: str = Field("flows.csv", pattern=r"^[^/\\]+$", description="name of the file")

    def write(self, source: Source, out: Path, report: LossReport, progress: Progress) -> None:
        """See :meth:`Format.write`."""
        messages = self.timed(source)
        order = np.lexsort((messages.dst, messages.src, messages.start_ps))
        columns = (messages.src, messages.dst, messages.size_bytes, messages.start_ps, messages.end_ps)
        names = source.topology.node_names
        with (out / self.file).open("w", encoding="utf-8", newline="") as file:
            rows = csv.writer(file, lineterminator="\n")
            rows.writerow(("src", "dst", "size_bytes", "start_ns", "end_ns"))
            values = zip(*(column[order].tolist() for column in columns), strict=True)
            for at, (src, dst, size, start, end) in enumerate(values, 1):
                rows.writerow((names[src], names[dst], size, _ns(start), _ns(end)))
                if not at % 65536:
                    progress(at, len(order), "messages")
        report.written(
            "messages", len(order), f"{self.file}, with the times of a run on {source.run.network}"
        )


def _ns(time_ps: int) -> str:
    whole, part = divmod(time_ps, PS_PER_NS)
    return f"{whole}.{part:03d}"
