"""Format ``flow-list``: the flow file of HPCC's and SimAI's ns-3, with the times of a run of ours.

The target has no dependencies: a message is sent when the file says, whatever has arrived. The times are
those of the scenario on its own network; on another network they are wrong where the traffic would have
waited.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar, TextIO

import numpy as np
from pydantic import Field

from cosim.formats.flow_list.read import Flow
from cosim.translation.contract import Progress
from cosim.translation.loss_report import LossReport
from cosim.translation.message_level import OpenLoop
from cosim.translation.source import Source
from cosim.units import PS_PER_S


class FlowListFormat(OpenLoop):
    """The flow file of HPCC's and SimAI's ns-3: messages at the times of a run of ours (open loop)"""

    goes: ClassVar[str] = "each message goes at"

    file: str = Field("flow.txt", pattern=r"^[^/\\]+$", description="name of the file")
    priority_group: int = Field(3, ge=0, description="of every flow")
    port: int = Field(100, ge=0, le=65535, description="destination port of every flow")

    def write(self, source: Source, out: Path, report: LossReport, progress: Progress) -> None:
        """See :meth:`Format.write`."""
        messages = self.timed(source)
        order = np.lexsort((messages.dst, messages.src, messages.start_ps))
        total = len(order)
        columns = (messages.src, messages.dst, messages.size_bytes, messages.start_ps)
        rows = zip(*(column[order].tolist() for column in columns), strict=True)
        flows = (Flow(src, dst, self.priority_group, self.port, size, at) for src, dst, size, at in rows)
        with (out / self.file).open("w", encoding="ascii") as file:
            write_flows(file, total, flows, progress)
        report.written("messages", total, f"{self.file}, with the times of a run on {source.run.network}")


def write_flows(file: TextIO, count: int, flows: Iterable[Flow], progress: Progress) -> None:
    """Write the number of flows, then each; times in seconds, to a picosecond."""
    file.write(f"{count}\n")
    for at, flow in enumerate(flows, 1):
        whole, part = divmod(flow.start_ps, PS_PER_S)
        start = f"{whole}.{part:012d}"
        file.write(f"{flow.src} {flow.dst} {flow.priority_group} {flow.port} {flow.size_bytes} {start}\n")
        if not at % 65536:
            progress(at, count, "messages")
