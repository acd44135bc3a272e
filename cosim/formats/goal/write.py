"""Format ``goal``: GOAL text, the schedules of LogGOPSim and ATLAHS.

::

    num_ranks 2
    rank 0 {
    l0: calc 1500 cpu 0
    l1: send 1024b to 1 tag 0 cpu 1
    l1 requires l0
    }

A ``calc`` takes nanoseconds. One runs at a time on a ``cpu``: calculations that might run beside each other
get cpus of their own, and so do messages and joins (:data:`MESSAGE_CPU`), which would wait for a calculation
otherwise. Schedules are those of Hoefler, Schneider and Lumsdaine, "LogGOPSim", HPDC 2010,
doi:10.1145/1851476.1851564, as its ``txt2bin`` reads them. A send there ends when it has left, ours when it
has arrived (there too above the size ``-S``, at which a sender waits for its receiver).

Run them by the LogGOPSim of ATLAHS (Shen et al., arXiv:2505.08936, github.com/spcl/atlahs). The one of
github.com/spcl/LogGOPSim, at 76451de, begins what waits for another cpu without waiting for its end, so that
its times of schedules with several cpus are too short.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from pydantic import Field

from cosim.network.flows import I32
from cosim.translation.contract import Progress
from cosim.translation.flat.nodes import COMPUTE, SEND
from cosim.translation.flat.view import Part
from cosim.translation.loss_report import LossReport, TranslationError
from cosim.translation.message_level import MessageLevel, chains, delays
from cosim.translation.source import Source
from cosim.units import PS_PER_NS

CPUS = 256
"""A cpu's number is a byte."""
MESSAGE_CPU = 1
"""Where sends, receives and joins stand, and no calculation that takes time: none of them waits for one."""
_LARGEST_TAG = 2**32 - 2
"""2^32 - 1 is any tag."""


class GoalFormat(MessageLevel):
    """GOAL text: sends, receives and calculations of each rank, for LogGOPSim and ATLAHS"""

    file: str = Field("schedule.goal", pattern=r"^[^/\\]+$", description="name of the file")

    def examine(self, source: Source, report: LossReport) -> None:
        """See :meth:`MessageLevel.examine`."""
        super().examine(source, report)
        for job, flat in zip(source.jobs, self.view(source).flat, strict=True):
            if flat.num_tags * job.iterations > _LARGEST_TAG:
                raise TranslationError(
                    f"job {job.name!r} takes {flat.num_tags * job.iterations} tags; GOAL has 32 bits",
                    hint="translate fewer iterations: --set jobs[0].iterations=1",
                )

    def write(self, source: Source, out: Path, report: LossReport, progress: Progress) -> None:
        """See :meth:`Format.write`."""
        numbers = self.numbers(source)
        view = self.view(source)
        messages = 0
        with (out / self.file).open("w", encoding="ascii") as file:
            file.write(f"num_ranks {numbers.count}\n")
            for place, seat in enumerate(numbers.seat):
                file.write(f"\nrank {place} {{\n")
                if seat is not None:
                    rank = _RankSchedule(numbers.of[seat[0]])
                    for part in view.parts(*seat):
                        self.count_channels(part.nodes, report)
                        messages += part.nodes.num_messages
                        file.writelines(rank.lines(part))
                    rank.report(report)
                file.write("}\n")
                progress(place + 1, numbers.count, "ranks")
        report.written("messages", messages, self.file)
        report.written("ranks", numbers.count, self.file)


class _RankSchedule:
    """Writes the parts of one rank."""

    def __init__(self, of: I32) -> None:
        self._of = of
        self._last: list[int] = []
        self._before: list[int] = []
        self._kinds: list[int] = []
        self._rounded = self._crowded = self._left = 0

    def lines(self, part: Part) -> Iterator[str]:
        nodes = part.nodes
        timed = delays(nodes)
        lanes = chains(nodes, timed, self._last, self._before) if timed.any() or self._last else None
        if lanes is None:
            self._before += [-1] * len(nodes)
            lanes = np.full(len(nodes), -1, np.int32)
        self._crowded += int((lanes >= CPUS - 1).sum())
        of_calc = lanes % (CPUS - 1)
        cpus = np.where(lanes < 0, MESSAGE_CPU, of_calc + (of_calc >= MESSAGE_CPU)).tolist()
        self._rounded += int((nodes.duration_ps % PS_PER_NS != 0).sum())
        kinds = nodes.kind.tolist()
        self._kinds += kinds
        peers = self._of[np.maximum(nodes.peer, 0)].tolist()
        sizes, tags = nodes.size_bytes.tolist(), nodes.tag.tolist()
        spans = ((nodes.duration_ps + PS_PER_NS // 2) // PS_PER_NS).tolist()
        deps, ptr = nodes.dep.tolist(), nodes.dep_ptr.tolist()
        for at, kind in enumerate(kinds):
            name = f"l{part.first + at}"
            if kind == COMPUTE:
                yield f"{name}: calc {spans[at]} cpu {cpus[at]}\n"
            else:
                what = "send" if kind == SEND else "recv"
                to = "to" if kind == SEND else "from"
                yield f"{name}: {what} {sizes[at]}b {to} {peers[at]} tag {tags[at]} cpu {MESSAGE_CPU}\n"
            for dep in deps[ptr[at] : ptr[at + 1]]:
                self._left += self._kinds[dep] == SEND
                yield f"{name} requires l{dep}\n"

    def report(self, report: LossReport) -> None:
        report.approximated("durations", self._rounded, "rounded to whole nanoseconds")
        report.approximated("calculations beside others", self._crowded, f"there are {CPUS - 1} cpus")
        why = "on its leaving there: a send ends when it has left"
        report.approximated("dependencies on the arrival of an own message", self._left, why)
