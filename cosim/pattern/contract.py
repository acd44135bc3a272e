"""What a collective algorithm of a scenario is: a spec that builds a template, and says what it can carry.

::

    class Gather(Algorithm):
        '''All-gather: every rank sends its shard to every other at once'''

        name: ClassVar[str] = "gather"
        carries: ClassVar[frozenset[Collective]] = frozenset({Collective.ALL_GATHER})

        def build(self, collective, num_ranks, size_bytes, costs, *, reverse=False, chunk=0, root=0):
            self.check(collective, num_ranks)
            ...  # blocks of messages: see cosim.pattern.assemble
            return assemble(self.name, collective, num_ranks, size_bytes, blocks, num_chunks=num_ranks)

Each template is proved before it is timed: replayed on data, it has to leave every rank with what the
collective promises (:mod:`cosim.pattern.prove`).
"""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from cosim.context import Context
from cosim.errors import AlgorithmError, InputError
from cosim.pattern.costs import Costs
from cosim.pattern.template import Collective, Template
from cosim.registry import find, names
from cosim.spec import Spec
from cosim.topology.host_shape import HostShape

if TYPE_CHECKING:
    from cosim.pattern.group_links import GroupLinks


class Algorithm(Spec):
    """Base of the collective algorithms that a scenario can name."""

    name: ClassVar[str]
    """As reports call it."""
    carries: ClassVar[frozenset[Collective]]
    """The collectives it can do."""
    power_of_two: ClassVar[bool] = False
    """Only in groups of 2, 4, 8, ... ranks."""
    splits: ClassVar[bool] = True
    """The data may be split into chunks, each carried on its own."""
    variants: ClassVar[int] = 1
    """Chunk c uses the template of c mod variants."""
    checks_data: ClassVar[bool] = False
    """What it reads is proved for its data, too, though its templates have no chunks."""
    fixed: ClassVar[bool] = False
    """Its messages are what they are: neither sizes nor delays of the section change them."""
    carried: ClassVar[bool] = False
    """Code gives its messages while the run goes on (:class:`cosim.plugins.Carrier`): it has no template."""

    @classmethod
    def lacks(cls) -> list[str]:
        """Its name and what it carries."""
        wanted = {
            "name": 'name: ClassVar[str] = "mine"',
            "carries": "carries: ClassVar[frozenset[Collective]]",
        }
        return [text for name, text in wanted.items() if not hasattr(cls, name)]

    @classmethod
    def in_file(cls, path: Path) -> Algorithm | None:  # noqa: ARG003 - for those that are read from files
        """The algorithm that a file or folder holds, for ``cosim prove``; None: it is none of this kind."""
        return None

    def read(self, context: Context) -> Algorithm:  # noqa: ARG002 - for those that are read from files
        """The algorithm as its files have it, proved again for each run; itself, where there are none.

        Raises
        ------
        AlgorithmError
            Files that can't be read, or are wrong.
        """
        return self

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

    def by_links(self) -> bool:
        """Whether it is made for the links between a group's ranks: then :meth:`on_links` is asked."""
        return False

    def on_links(
        self,
        links: GroupLinks,  # noqa: ARG002 - for those that go by links
        collective: Collective,  # noqa: ARG002
        size_bytes: int,  # noqa: ARG002
    ) -> Algorithm:
        """The algorithm for one operation of a group that has these links.

        Raises
        ------
        AlgorithmError
            They don't do.
        """
        return self

    def on_hosts(self, hosts: HostShape) -> Algorithm:  # noqa: ARG002 - for those that use NVLink and NICs
        """The algorithm on a topology of such hosts; itself, unless it goes by their links."""
        return self

    def on_few(self, num_ranks: int, few: int) -> Algorithm:  # noqa: ARG002 - for those that go by hosts
        """What looks like this algorithm over ``num_ranks`` on few ranks, of which all orders are proved."""
        return self

    def meant_for(self, collective: Collective | None, num_ranks: int | None) -> tuple[Collective, int]:
        """What ``cosim prove`` proves: what is asked for; algorithms of files may say it themselves.

        Raises
        ------
        InputError
            Too little is said, or what doesn't fit.
        """
        if collective is None or num_ranks is None:
            asked = (("--collective", collective), ("--ranks", num_ranks))
            missing = " and ".join(option for option, value in asked if value is None)
            raise InputError(f"{self.name} is no file, so it names an algorithm, which needs {missing}")
        if not 2 <= num_ranks <= 1 << 16:
            raise InputError(f"--ranks {num_ranks}: it should be from 2 to 65536")
        return collective, num_ranks

    def prove(self, collective: Collective, num_ranks: int, size_bytes: int, *, root: int = 0) -> str:
        """Prove it, and say what was proved.

        Raises
        ------
        AlgorithmError
            A deadlock, a race, a wrong result.
        """
        from cosim.pattern.proof import prove_plan

        return prove_plan(self, collective, num_ranks, size_bytes, root=root)

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


def registered() -> dict[str, type[Algorithm]]:
    """Every algorithm that a scenario can name, each once, under the first of its names; loads them all."""
    found: dict[type[Algorithm], str] = {}
    for name in names("cosim.collectives"):
        try:
            kind = find("cosim.collectives", name)
        except ValueError:  # somebody's package; the others are still worth naming
            continue
        kind = kind if isinstance(kind, type) else type(kind)
        if kind not in found or name == kind.name:
            found[kind] = name
    return {name: kind for kind, name in found.items()}


def _which_could(collective: Collective, num_ranks: int) -> str:
    power = num_ranks & (num_ranks - 1) == 0
    could = [
        name
        for name, kind in registered().items()
        if collective in kind.carries and (power or not kind.power_of_two)
    ]
    return f"{collective.value} over {num_ranks} ranks can be carried by: {', '.join(could)}"
