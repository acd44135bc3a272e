"""What a host of a scenario is: a spec that gives a :class:`~cosim.host.hosts.Host`, the times that it takes.

A host of your own is a ``Host`` with other numbers, as a rule, at the end of an entry point::

    MINE = Host(name="mine", operator_time="15us", source="a profile of our training")

or a class, where the numbers are computed or read from a file.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from cosim.context import Context
from cosim.spec import Spec

if TYPE_CHECKING:
    from cosim.host.hosts import Host


class HostSpec(Spec):
    """Base of the hosts that a scenario can name."""

    @abstractmethod
    def build(self, context: Context) -> Host:
        """Its numbers; relative files start from ``context.base``.

        Raises
        ------
        WorkloadError
            A file that is missing, or says something else.
        """
