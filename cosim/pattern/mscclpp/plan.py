"""A plan: what the thread blocks of each GPU load, store, signal and wait for, as objects.

A thread block runs its steps in order. A step *moves*: what it loads from all of a move's sources is added up
(copied, where there is one) and stored at each of its targets, which may be memory of any GPU. A step may
also signal, wait, or meet other blocks of its GPU at a barrier.

Places are counted in *cells*, of which a chunk of the file has ``cells_per_chunk``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from cosim.pattern.template import Collective

Key = tuple[str, int, int, int]
"""(channel's kind, from which GPU, to which, the how manieth between them); ("semaphore", GPU, number, 0);
("barrier", GPU, number, blocks that come to it).
"""


class Polled(Enum):
    """How a reader knows that what it reads was written."""

    NO = "no"
    """It doesn't: something else has to order them."""
    DATA = "data"
    """The place holds a value that is no data until it is written (poison)."""
    PACKET = "packet"
    """Each 8 bytes come with 8 bytes of flag (NCCL's LL, MSCCL++'s packets)."""


@dataclass(frozen=True, slots=True)
class Part:
    """Cells ``first`` to ``first + count`` of a buffer (i, o, s) of a GPU."""

    gpu: int
    buffer: str
    first: int
    count: int
    polled: Polled = Polled.NO


@dataclass(frozen=True, slots=True)
class Move:
    """All sources, added up, go to each target, if there are any. Parts are equally long."""

    sources: tuple[Part, ...]
    targets: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One step. ``by_switch``: a switch adds up what comes from several GPUs, or copies what goes to several.
    ``turns``: it moves one of so many parts of its bytes.
    """

    name: str
    moves: tuple[Move, ...] = ()
    signals: tuple[Key, ...] = ()
    waits: tuple[Key, ...] = ()
    relaxed: bool = False
    barrier: Key | None = None
    by_switch: bool = False
    turns: int = 1


@dataclass(frozen=True, slots=True)
class Block:
    """A thread block: its number on its GPU, and its steps. Those from ``loop[0]`` to ``loop[1]`` are one
    turn of a pipeline, of as many turns as the data of ``unit_bytes`` a turn needs.
    """

    number: int
    steps: tuple[Step, ...]
    loop: tuple[int, int] = (0, 0)
    unit_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Gpu:
    """Cells of its buffers, its blocks, and with what its own semaphores begin."""

    cells: dict[str, int]
    blocks: tuple[Block, ...]
    semaphores: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Plan:
    """A plan of one collective. ``num_cells``: of the whole buffer, as the collective counts it."""

    name: str
    collective: Collective
    in_place: bool
    threads: int
    cells_per_chunk: int
    gpus: tuple[Gpu, ...]
    file: str = ""

    @property
    def num_cells(self) -> int:
        """Cells of a rank's buffer: its input, of an all-gather too."""
        return self.gpus[0].cells["i"]

    def steps(self) -> Iterator[tuple[int, int, int, Step]]:
        """(GPU, block, step's number, step), block by block."""
        for gpu, its in enumerate(self.gpus):
            for block in its.blocks:
                for number, step in enumerate(block.steps):
                    yield gpu, block.number, number, step

    def place(self, gpu: int, block: int, step: int) -> str:
        """As a person would say it."""
        return f"GPU {gpu}, block {block}, step {step}"
