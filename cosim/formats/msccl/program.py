"""A program: what MSCCL XML says, as objects. :mod:`read` and :mod:`write` are its two directions.

The interpreter on a GPU runs all thread blocks at once, the steps of each in order:

====  ==========================================================================================
s     send: ``count`` chunks from src to the block's send peer
r     receive: the next message of the block's receive peer, to dst
rcs   receive, copy to dst, send on
rrc   receive, reduce with src, copy to dst
rrs   receive, reduce with src, send on; nothing is stored
rrcs  receive, reduce with src, copy to dst, send on
cpy   copy src to dst, on the GPU itself
re    reduce src into dst, on the GPU itself
nop   nothing; carries one more dependency for the step after it
====  ==========================================================================================

A step waits for the step before it and for the step ``waits_for`` of another thread block of its GPU, which
must have ``signals`` (``hasdep``) set. A connection is (source, destination, channel); its n-th send meets
its n-th receive. A step's src is on its own GPU, but for r and rcs, where it says the sender's; its dst
likewise, but for s and rrs, where it says the receiver's.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from cosim.pattern.template import Collective

SENDS = frozenset({"s", "rcs", "rrs", "rrcs"})
RECEIVES = frozenset({"r", "rcs", "rrc", "rrs", "rrcs"})
REDUCES = frozenset({"rrc", "rrs", "rrcs", "re"})
STORES = frozenset({"r", "rcs", "rrc", "rrcs", "cpy", "re"})
KINDS = ("s", "r", "rcs", "rrc", "rrs", "rrcs", "cpy", "re", "nop")

COLLECTIVES = {
    "allreduce": Collective.ALL_REDUCE,
    "allgather": Collective.ALL_GATHER,
    "reducescatter": Collective.REDUCE_SCATTER,
    "alltoall": Collective.ALL_TO_ALL,
    "broadcast": Collective.BROADCAST,
}
"""What ``coll`` may say, without underscores, besides ``custom``."""
PROTOCOLS = ("Simple", "LL", "LL128")
BUFFERS = ("i", "o", "s")
"""Input, output, scratch."""

Place = tuple[str, int]
"""A buffer and a chunk of it."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a thread block."""

    kind: str
    src: Place
    dst: Place
    count: int
    waits_for: tuple[int, int] | None = None
    signals: bool = False
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class ThreadBlock:
    """Steps in order, one peer to send to and one to receive from (-1: none), on one channel."""

    number: int
    send: int
    recv: int
    channel: int
    steps: tuple[Step, ...]
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class GpuProgram:
    """A GPU's buffers, in chunks, and its thread blocks."""

    i_chunks: int
    o_chunks: int
    s_chunks: int
    blocks: tuple[ThreadBlock, ...]
    line: int = field(default=0, compare=False)

    def chunks(self, buffer: str) -> int:
        """Chunks of a buffer as the file declares it."""
        return {"i": self.i_chunks, "o": self.o_chunks, "s": self.s_chunks}[buffer]


@dataclass(frozen=True, slots=True)
class MscclProgram:
    """An algorithm. ``collective`` is None for ``custom``: whoever uses it says what it should do.

    ``num_chunks`` is ``nchunksperloop``: an all-reduce's buffer, an all-gather's output, a reduce-scatter's
    and an all-to-all's input are that many chunks. ``extra`` are the remaining attributes of ``<algo>``.
    """

    name: str
    collective: Collective | None
    protocol: str
    num_channels: int
    num_chunks: int
    in_place: bool
    out_of_place: bool
    gpus: tuple[GpuProgram, ...]
    extra: tuple[tuple[str, str], ...] = ()
    file: str = field(default="", compare=False)
    ignored: tuple[str, ...] = field(default=(), compare=False)

    @property
    def num_steps(self) -> int:
        """Steps of all thread blocks, nops included."""
        return sum(len(block.steps) for gpu in self.gpus for block in gpu.blocks)

    @property
    def num_blocks(self) -> int:
        """Thread blocks of all GPUs."""
        return sum(len(gpu.blocks) for gpu in self.gpus)

    def says(self, gpu: int, block: int, step: int) -> str:
        """``GPU 0, tb 3, step 1 (rcs from GPU 2 to GPU 1 on channel 0; line 17)``; block is its position."""
        tb = self.gpus[gpu].blocks[block]
        it = tb.steps[step]
        what = it.kind
        if it.kind in RECEIVES:
            what += f" from GPU {tb.recv}"
        if it.kind in SENDS:
            what += f" to GPU {tb.send}"
        if it.kind in RECEIVES | SENDS:
            what += f" on channel {tb.channel}"
        line = f"; line {it.line}" if it.line else ""
        return f"GPU {gpu}, tb {tb.number}, step {step} ({what}{line})"
