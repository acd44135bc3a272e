"""What lies in each GPU's buffers before a collective, and what must lie there after it."""

from __future__ import annotations

from dataclasses import dataclass

from cosim.errors import AlgorithmError, Location
from cosim.formats.msccl.program import MscclProgram, Place
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


def promise(program: MscclProgram, collective: Collective, *, in_place: bool, root: int = 0) -> Promise:
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
        before, after, (merged, into) = _of_gpu(program, collective, gpu, share, root)
        start |= {(gpu, "i", k): piece for k, piece in before.items()}
        due |= {(gpu, "o", k): piece for k, piece in after.items()}
        if in_place:
            alias[gpu, merged] = into
    holders: dict[int, list[int]] = {}
    for (gpu, _, _), piece in start.items():
        holders.setdefault(piece, []).append(gpu)
    found = Promise(collective, {}, {}, {piece: frozenset(gpus) for piece, gpus in holders.items()}, alias)
    for cells, memory in ((start, found.start), (due, found.due)):
        memory.update({found.cell(gpu, (buffer, k), 0): piece for (gpu, buffer, k), piece in cells.items()})
    return found


def _of_gpu(
    program: MscclProgram, collective: Collective, gpu: int, share: int, root: int
) -> tuple[dict[int, int], dict[int, int], tuple[str, Place]]:
    """Pieces by chunk of the input before and of the output after; which buffer lies where if in place."""
    chunks = range(program.num_chunks)
    every = {k: k for k in chunks}
    own = {k: gpu * share + k for k in range(share)}
    onto_input: tuple[str, Place] = ("o", ("i", 0))
    match collective:
        case Collective.ALL_REDUCE:
            return every, every, onto_input
        case Collective.ALL_GATHER:
            return own, every, ("i", ("o", gpu * share))
        case Collective.REDUCE_SCATTER:
            return every, own, ("o", ("i", gpu * share))
        case Collective.ALL_TO_ALL:
            sent = {k: gpu * len(chunks) + k for k in chunks}
            got = {k: k // share * len(chunks) + gpu * share + k % share for k in chunks}
            return sent, got, onto_input
        case Collective.BROADCAST:
            return every if gpu == root else {}, every, onto_input
    raise AlgorithmError(f"{program.name}: MSCCL XML has no {collective.value}")
