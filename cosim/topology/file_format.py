"""What formats of topology files are: which files they read, and what nodes and cables such a file lists.

::

    class Lines(TopologyFormat):
        '''Two names and a rate on each line'''

        def refuses(self, start: str, path: Path) -> str | None:
            return None if start.startswith("# cables") else "it doesn't begin with '# cables'"

        def read(self, path: Path, cables: Cables, report: ReportBuilder) -> None:
            for number, line in enumerate(path.read_text().splitlines()[1:], 2):
                one, two, rate = line.split()
                cables.link(one, two, rate_bps=parse_rate(rate), line=number)
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from cosim.errors import Location, TopologyError
from cosim.files.import_report import ReportBuilder
from cosim.spec import Spec
from cosim.topology.graph import MOST_LATENCY_PS

Role = Literal["endpoint", "switch"]


@dataclass(frozen=True, slots=True)
class Cable:
    """A link between two nodes: bits per second, picoseconds, None where the file doesn't say; ``back_ps``:
    the latency the other way, if another. ``scale_up``: within a host or rack.
    """

    one: str
    two: str
    rate_bps: float | None = None
    latency_ps: int | None = None
    back_ps: int | None = None
    scale_up: bool = False


@dataclass
class Cables:
    """What a reader collects: nodes by name, in the file's order, with the role of those of which the file
    says it; cables. ``file`` is what errors call the file.
    """

    file: str
    roles: dict[str, Role | None] = field(default_factory=dict)
    cables: list[Cable] = field(default_factory=list)

    def node(self, name: str, role: Role | None = None, line: int | None = None) -> None:
        """Add a node, or its role; a role doesn't change. ``line`` is the file's, for errors.

        Raises
        ------
        TopologyError
            An empty name, or another role than before; at the line.
        """
        if not name:
            raise self.wrong("a node without a name", line)
        known = self.roles.get(name)
        if known is not None and role is not None and known != role:
            raise self.wrong(f"{name!r} is {_said(known)}, and here {_said(role)}", line)
        self.roles[name] = role or known

    def link(
        self,
        one: str,
        two: str,
        *,
        rate_bps: float | None = None,
        latency_ps: int | None = None,
        back_ps: int | None = None,
        scale_up: bool = False,
        line: int | None = None,
    ) -> None:
        """Add a cable, both ways.

        Parameters
        ----------
        one, two
            Names of nodes, which may be new.
        rate_bps, latency_ps
            Each way: bits per second, picoseconds; None: the file doesn't say.
        back_ps
            The latency from ``two`` to ``one``, where it differs.
        scale_up
            Whether it is a link of a scale-up domain.
        line
            The file's line, for errors.

        Raises
        ------
        TopologyError
            A cable from a node to itself, or a rate or latency that can't be; at the line.
        """
        for name in (one, two):
            self.node(name, line=line)
        if one == two:
            raise self.wrong(f"a cable from {one!r} to itself", line, "two nodes")
        if rate_bps is not None and not 0 < rate_bps < _MOST_BPS:
            raise self.wrong(f"a rate of {rate_bps:g} bit/s", line, "above zero, below 1 Pbit/s")
        if any(
            latency is not None and not 0 <= latency <= MOST_LATENCY_PS for latency in (latency_ps, back_ps)
        ):
            raise self.wrong(f"a latency of {latency_ps} ps", line, "from 0 to 1000 s")
        self.cables.append(Cable(one, two, rate_bps, latency_ps, back_ps, scale_up))

    def wrong(self, message: str, line: int | None = None, hint: str | None = None) -> TopologyError:
        """An error at a line of the file."""
        return TopologyError(message, location=Location(self.file, line), hint=hint)


_MOST_BPS = 1e15


def _said(role: Role) -> str:
    return "an endpoint" if role == "endpoint" else "a switch"


class TopologyFormat(Spec):
    """Base of the formats of topology files; `kind: file` asks each whether a file is one of its own."""

    @abstractmethod
    def refuses(self, start: str, path: Path) -> str | None:
        """Why a file is none of this format, as `it has no header`; None: it is one.

        ``start`` is what the file begins with, at most 64 KiB; of a folder, its first file does.
        """

    @abstractmethod
    def read(self, path: Path, cables: Cables, report: ReportBuilder) -> None:
        """Collect the nodes and cables of a file, and say what was read, ignored and assumed.

        Raises
        ------
        TopologyError
            A file that can't be read or meant; names file and line.
        """
