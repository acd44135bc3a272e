"""What lies in each GPU's buffers before a collective, and what must lie there after it."""

from __future__ import annotations

from dataclasses import dataclass

from cosim.errors import AlgorithmError, Location
from cosim.formats.msccl.program import Place, Program
from cosim.pattern.template import Collective

Cell = tuple[int, str, int]
"""GPU, buffer, chunk."""


@dataclass(frozen=True, eq=False)
class Promise:
    """``start[cell]`` is the piece of data that lies there before, ``due[cell]`` the one due after.

    A piece that several GPUs start with is due reduced over all of them, each once. ``alias`` shifts a
    buffer onto another where the collective runs in place: (GPU, buffer) to (buffer, shift).
    """

    collective: Collective
    start: dict[Cell, int]
    due: dict[Cell, int]
    contributors: dict[int, frozenset[int]]
    alias: dict[tuple[int, str], Place]

    def cell(self, gpu: int, place: Place, offset: int) -> Cell:
        """The memory behind a place of the program."""
        buffer, chunk = place
        target, shift = self.alias.get((gpu, buffer), (buffer, 0))
        return gpu, target, chunk + shift + offset


def promise(program: Program, collective: Collective, *, in_place: bool, root: int = 0) -> Promise:
    """The promise of ``collective`` to ``program``'s GPUs.

    Raises
    ------
    AlgorithmError
        Chunks that don't divide among the GPUs, or a collective that MSCCL XML has no name for.
    """
    n, chunks = len(program.gpus), program.num_chunks
    share, rest = divmod(chunks, n)
    shared = (Collective.ALL_GATHER, Collective.REDUCE_SCATTER, Collective.ALL_TO_ALL)
    if rest and collective in shared:
        raise AlgorithmError(
            f"{program.name}: {chunks} chunks don't divide among {n} GPUs, as {collective.value} needs",
            location=Location(program.file, 1, "<algo> nchunksperloop"),
            hint=f"a multiple of {n}",
        )
    start: dict[Cell, int] = {}
    due: dict[Cell, int] = {}
    alias: dict[tuple[int, str], Place] = {}
    for gpu in range(n):
        if collective is Collective.ALL_REDUCE:
            start.update({(gpu, "i", k): k for k in range(chunks)})
            due.update({(gpu, "o", k): k for k in range(chunks)})
            alias[gpu, "o"] = ("i", 0)
        elif collective is Collective.ALL_GATHER:
            start.update({(gpu, "i", k): gpu * share + k for k in range(share)})
            due.update({(gpu, "o", k): k for k in range(chunks)})
            alias[gpu, "i"] = ("o", gpu * share)
        elif collective is Collective.REDUCE_SCATTER:
            start.update({(gpu, "i", k): k for k in range(chunks)})
            due.update({(gpu, "o", k): gpu * share + k for k in range(share)})
            alias[gpu, "o"] = ("i", gpu * share)
        elif collective is Collective.ALL_TO_ALL:
            start.update({(gpu, "i", k): gpu * chunks + k for k in range(chunks)})
            due.update({(gpu, "o", k): k // share * chunks + gpu * share + k % share for k in range(chunks)})
            alias[gpu, "o"] = ("i", 0)
        elif collective is Collective.BROADCAST:
            start.update({(gpu, "i", k): k for k in range(chunks) if gpu == root})
            due.update({(gpu, "o", k): k for k in range(chunks)})
            alias[gpu, "o"] = ("i", 0)
        else:
            raise AlgorithmError(f"{program.name}: MSCCL XML has no {collective.value}")
    if not in_place:
        alias = {}
    holders: dict[int, list[int]] = {}
    for (gpu, _, _), piece in start.items():
        holders.setdefault(piece, []).append(gpu)
    found = Promise(collective, {}, {}, {piece: frozenset(gpus) for piece, gpus in holders.items()}, alias)
    for cells, into in ((start, found.start), (due, found.due)):
        into.update({found.cell(gpu, (buffer, k), 0): piece for (gpu, buffer, k), piece in cells.items()})
    return found
