"""A custom algorithm from Chakra files, one for each rank, as ASTRA-sim's ``*-implementation-custom``.

See :mod:`cosim.formats.chakra.custom` for what the nodes mean and what of them can be checked.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from pydantic import Field

from cosim.context import Context
from cosim.errors import AlgorithmError, InputError, WorkloadError
from cosim.formats.chakra.custom import SEND, RankNodes, custom_template
from cosim.pattern.contract import Algorithm
from cosim.pattern.costs import Costs
from cosim.pattern.prove import prove
from cosim.pattern.template import Collective, Template
from cosim.pattern.unread import Unread


class _Custom(Algorithm):
    name: ClassVar[str] = "chakra"
    carries: ClassVar[frozenset[Collective]] = frozenset(Collective)
    splits: ClassVar[bool] = False
    fixed: ClassVar[bool] = True

    path: str = Field(description="folder and prefix: PATH.0.et, PATH.1.et, ...")


class ChakraFiles(Unread, _Custom):
    """SEND, RECV and COMP nodes from Chakra files, one for each rank"""

    @classmethod
    def in_file(cls, path: Path) -> ChakraFiles | None:
        """A folder with one PATH.0.et, PATH.1.et ..., or that PATH."""
        if path.is_dir():
            first = sorted(path.glob("*.0.et"))
            if len(first) > 1:
                raise InputError(
                    f"{path} should have the Chakra files of one collective, NAME.0.et, NAME.1.et ...; "
                    f"first files there: {', '.join(each.name for each in first)}"
                )
            return cls(path=str(first[0]).removesuffix(".0.et")) if first else None
        return cls(path=str(path)) if path.with_name(f"{path.name}.0.et").exists() else None

    def read(self, context: Context) -> ChakraNodes:
        """The nodes of each rank."""
        from cosim.formats.chakra.read_messages import read_messages  # brings protobuf, which few runs need

        try:
            ranks = [RankNodes.from_columns(columns) for columns in read_messages(context.base / self.path)]
        except WorkloadError as error:  # these files are an algorithm's, not a job's
            raise AlgorithmError(error.message, location=error.location, hint=error.hint) from error
        return ChakraNodes(path=self.path, ranks=tuple(ranks))


class ChakraNodes(_Custom):
    """What such files say: the nodes of each rank."""

    ranks: tuple[RankNodes, ...]

    def meant_for(self, collective: Collective | None, num_ranks: int | None) -> tuple[Collective, int]:
        """As many ranks as files; nodes don't say what for."""
        if num_ranks not in (None, len(self.ranks)):
            raise InputError(f"--ranks {num_ranks}: there are {len(self.ranks)} files {self.path}.N.et")
        return collective or Collective.ALL_REDUCE, len(self.ranks)

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
        """See :meth:`Algorithm.build`; nothing but the number of ranks matters."""
        del costs, reverse, chunk, root
        if len(self.ranks) != num_ranks:
            raise AlgorithmError(
                f"the algorithm in {self.path} is for {len(self.ranks)} ranks, and this group has {num_ranks}"
            )
        return custom_template(self.path, collective, size_bytes, self.ranks)

    def prove(self, collective: Collective, num_ranks: int, size_bytes: int, *, root: int = 0) -> str:
        """That messages are matched and nothing deadlocks; what they carry isn't known."""
        template = self.build(collective, num_ranks, size_bytes, Costs(), root=root)
        prove(template)
        sends = sum(int((each.kind == SEND).sum()) for each in self.ranks)
        nodes = sum(len(each.node) for each in self.ranks)
        steps = len(template.block_repeat) - 2
        return (
            f"proved: {self.path}, {num_ranks} ranks: "
            "every SEND meets a RECV of its size, nothing deadlocks\n"
            f"  {nodes} nodes, {sends} messages, {template.total_bytes} bytes; {steps} steps along the "
            "longest way\n"
            "  what data the messages carry isn't in such files, so the result isn't proved"
        )
