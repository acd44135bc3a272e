"""A custom algorithm from Chakra files, one for each rank, as ASTRA-sim's ``*-implementation-custom``.

This room doesn't read files: whoever makes the planner gives it a reader of them. See
:mod:`cosim.pattern.custom` for what the nodes mean and what of them can be checked.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, NoReturn

from pydantic import Field

from cosim.errors import AlgorithmError
from cosim.pattern.algorithm import FromFiles
from cosim.pattern.costs import Costs
from cosim.pattern.template import Collective


class ChakraFiles(FromFiles):
    """SEND, RECV and COMP nodes from Chakra files, one for each rank"""

    name: ClassVar[str] = "chakra"
    carries: ClassVar[frozenset[Collective]] = frozenset(Collective)
    splits: ClassVar[bool] = False

    path: str = Field(description="folder and prefix: PATH.0.et, PATH.1.et, ...")

    def read(
        self,
        base: Path,
        collective: Collective,
        num_ranks: int,
        size_bytes: int,
        costs: Costs,
        *,
        root: int = 0,
    ) -> NoReturn:
        """Always refused: the planner builds these with the reader it was given.

        Raises
        ------
        AlgorithmError
            The planner has no reader.
        """
        del base, collective, num_ranks, size_bytes, costs, root
        raise AlgorithmError(
            f"the algorithm in {self.path} can't be read here", hint="make the Planner with read_custom="
        )
