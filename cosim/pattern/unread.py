"""An algorithm that stands in a file: what is read from it builds the template."""

from __future__ import annotations

from cosim.context import HERE
from cosim.pattern.contract import Algorithm
from cosim.pattern.costs import Costs
from cosim.pattern.template import Collective, Template


class Unread(Algorithm):
    """Base of what a scenario says of such a file; ``read`` gives the algorithm that it holds."""

    def build(
        self,
        collective: Collective,
        num_ranks: int,
        size_bytes: int,
        costs: Costs,
        *,
        reverse: bool = False,
        chunk: int = 0,
        root: int = 0,
    ) -> Template:
        """As :meth:`read` from the working folder has it."""
        made = self.read(HERE)
        return made.build(collective, num_ranks, size_bytes, costs, reverse=reverse, chunk=chunk, root=root)
