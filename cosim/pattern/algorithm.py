"""What every collective algorithm is: a spec that builds a template, and says what it can carry."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import ClassVar

from cosim.errors import AlgorithmError
from cosim.pattern.costs import Costs
from cosim.pattern.template import Collective, Template
from cosim.spec import Spec


class Algorithm(Spec):
    """Base of collective algorithms. A subclass names itself, what it carries, and builds templates.

    ``carries`` are the collectives it can do; ``power_of_two``: only groups of 2, 4, 8, ... ranks;
    ``splits``: the data may be split into chunks; ``variants``: chunk c uses the template of c mod variants.
    """

    name: ClassVar[str]
    carries: ClassVar[frozenset[Collective]]
    power_of_two: ClassVar[bool] = False
    splits: ClassVar[bool] = True
    variants: ClassVar[int] = 1

    def placed(
        self,
        collective: Collective,  # noqa: ARG002 - for algorithms that choose
        num_ranks: int,  # noqa: ARG002
        size_bytes: int,  # noqa: ARG002
        dims: tuple[int, ...] | None,  # noqa: ARG002
    ) -> Algorithm:
        """The algorithm for one operation of a group; itself, unless it chooses by size or by place.

        ``dims`` are the group's sizes along the topology's dimensions, dimension 0 first; None: no grid.
        """
        return self

    def check(self, collective: Collective, num_ranks: int) -> None:
        """Refuse what this algorithm can't do.

        Raises
        ------
        AlgorithmError
            Says which algorithms could.
        """
        if collective not in self.carries:
            raise AlgorithmError(
                f"{self.name} can't carry {collective.value}", hint=_which_could(collective, num_ranks)
            )
        if self.power_of_two and num_ranks & (num_ranks - 1):
            raise AlgorithmError(
                f"{self.name} needs a power of two of ranks, and this group has {num_ranks}",
                hint=_which_could(collective, num_ranks),
            )

    @abstractmethod
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
        """The messages of one collective.

        Parameters
        ----------
        collective, num_ranks, size_bytes
            What is to be done; ``size_bytes`` as :class:`~cosim.pattern.template.Collective` counts it.
            ``num_ranks`` is at least 2.
        costs
            Delays, and how shares are rounded.
        reverse
            Anticlockwise, where the algorithm has a direction.
        chunk
            Which chunk of the operation this is, for algorithms that alternate.
        root
            Position of the rank that a broadcast starts from.

        Raises
        ------
        AlgorithmError
            This algorithm can't.
        """


class FromFiles(Algorithm):
    """Base of algorithms that are read from files, and so need the folder that paths start from.

    They are proved anew by each planner, as the files may have changed.
    """

    path: str

    def idle_in(self, base: Path) -> list[tuple[str, str]]:
        """As ``idle_settings``, once the files can be looked at; what can't be read is said by ``read``."""
        del base
        return []

    @abstractmethod
    def read(
        self,
        base: Path,
        collective: Collective,
        num_ranks: int,
        size_bytes: int,
        costs: Costs,
        *,
        root: int = 0,
    ) -> Template:
        """The template of one collective; ``base`` is the folder that ``path`` starts from.

        Raises
        ------
        AlgorithmError
            Files that can't be read, are wrong, or are for another collective or number of ranks.
        """

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
        """As :meth:`read`, from the working folder; the planner reads from the scenario's."""
        del reverse, chunk
        return self.read(Path(), collective, num_ranks, size_bytes, costs, root=root)


def _which_could(collective: Collective, num_ranks: int) -> str:
    from cosim.pattern.direct import Direct
    from cosim.pattern.dissemination import Dissemination
    from cosim.pattern.double_binary_tree import DoubleBinaryTree
    from cosim.pattern.halving_doubling import HalvingDoubling
    from cosim.pattern.ring import Ring
    from cosim.pattern.send_recv import SendRecv
    from cosim.pattern.tree import BinomialTree

    known: tuple[type[Algorithm], ...] = (
        Ring, Direct, HalvingDoubling, DoubleBinaryTree, BinomialTree, Dissemination, SendRecv,
    )  # fmt: skip
    power = num_ranks & (num_ranks - 1) == 0
    could = [kind.name for kind in known if collective in kind.carries and (power or not kind.power_of_two)]
    return f"{collective.value} over {num_ranks} ranks can be carried by: {', '.join(could)}"
