"""Kernels that are known, as plans: by multicast, by stores, by loads, by packets.

Their structure is that of NVIDIA/nccl ``contrib/custom_algos`` (Apache-2.0), read and written again:

``oneshot_multicast``
    Each GPU loads all of the sum through the switch, which adds up (multimem.ld_reduce).
``twoshot_multicast``
    Each GPU loads its share of the sum, and stores it to all through the switch (multimem.st). Then a
    barrier; with ``poison`` none: a GPU polls its output until no place holds poison.
``lsa_alltoall``
    Each GPU stores to every other; then a barrier, or polling (``poison``).
``get_direct``
    Each GPU loads the shards of all others.

that of the all-reduces 6 and 5 of microsoft/mscclpp ``test/mscclpp-test`` (MIT), and of NCCL's rings with LL:

``twoshot_packets``
    Each GPU stores to every other its share as packets, adds up what comes, and stores the sum to all.
``twoshot_get``
    Each GPU loads its share from all others, adds up, and loads the sums of all others after a barrier.
``ring_packets``
    Packets go around twice: to be added up, then to be read.

Who calls has all ranks meet before, as there, and buffers poisoned.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, NamedTuple

from pydantic import Field

from cosim.pattern.contract import Algorithm
from cosim.pattern.costs import Costs
from cosim.pattern.mscclpp.algorithm import template_of
from cosim.pattern.mscclpp.plan import (
    KernelPlan,
    Key,
    MemoryMove,
    MemoryPart,
    PlanBlock,
    PlanGpu,
    PlanStep,
    Polled,
)
from cosim.pattern.template import Collective, Template
from cosim.spec import TimePs


class _Shape(NamedTuple):
    """A kernel's GPUs, the blocks of each, and bytes."""

    gpus: int
    blocks: int
    size_bytes: int


class _KernelAlgorithm(Algorithm):
    checks_data: ClassVar[bool] = True
    splits: ClassVar[bool] = False

    blocks: int = Field(4, ge=1, le=1024, description="thread blocks of each GPU")
    threads: int = Field(1024, ge=32, le=1024, description="of a block")
    launch: TimePs = Field(0, ge=0, description="of the kernel, and its end: added once")

    @abstractmethod
    def _block(self, gpu: int, block: int, of: _Shape) -> tuple[PlanStep, ...]:
        """The steps of a thread block."""

    @abstractmethod
    def _cells(self, of: _Shape) -> tuple[int, int, int]:
        """Cells of input, of output and of scratch."""

    def _active(self, n: int, size_bytes: int) -> int:
        """Blocks that have something to do."""
        del n, size_bytes
        return self.blocks

    def plan(self, collective: Collective, n: int, size_bytes: int) -> KernelPlan:
        """The kernel as a plan for so many GPUs."""
        shape = _Shape(n, self._active(n, size_bytes), size_bytes)
        inputs, outputs, scratch = self._cells(shape)
        gpus = tuple(
            PlanGpu(
                {"i": inputs, "o": outputs, "s": scratch},
                tuple(PlanBlock(block, self._block(gpu, block, shape)) for block in range(shape.blocks)),
            )
            for gpu in range(n)
        )
        return KernelPlan(self.name, collective, False, self.threads, 1, gpus)

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
        """See :meth:`Algorithm.build`; the data is proved on the plan."""
        del reverse, chunk
        self.check(collective, num_ranks)
        return template_of(
            self.plan(collective, num_ranks, size_bytes), collective, size_bytes, costs, self.launch, root
        )

    def prove(self, collective: Collective, num_ranks: int, size_bytes: int, *, root: int = 0) -> str:
        """Its data, exactly, and every order in which its steps may run."""
        from cosim.pattern.mscclpp.prove import prove_plan

        self.check(collective, num_ranks)
        return str(prove_plan(self.plan(collective, num_ranks, size_bytes), root=root))

    def _meet(self, gpu: int, block: int, n: int) -> tuple[PlanStep, ...]:
        """A barrier between the blocks of this number on all GPUs."""
        peers = [peer for peer in range(n) if peer != gpu]
        arrive: tuple[Key, ...] = tuple(("memory", gpu, peer, block) for peer in peers)
        wait: tuple[Key, ...] = tuple(("memory", peer, gpu, block) for peer in peers)
        return (PlanStep("signal", signals=arrive), PlanStep("wait", waits=wait))


class OneshotMulticast(_KernelAlgorithm):
    """All-reduce: every GPU loads the sum through the switch (multimem.ld_reduce)"""

    name: ClassVar[str] = "oneshot_multicast"
    carries: ClassVar[frozenset[Collective]] = frozenset({Collective.ALL_REDUCE})

    def _cells(self, of: _Shape) -> tuple[int, int, int]:
        return of.blocks, of.blocks, 0

    def _active(self, n: int, size_bytes: int) -> int:
        """Threads take 16 bytes each, in turn: the blocks that come to something."""
        del n
        return max(1, min(self.blocks, -(-size_bytes // (16 * self.threads))))

    def _block(self, gpu: int, block: int, of: _Shape) -> tuple[PlanStep, ...]:
        sources = tuple(MemoryPart(peer, "i", block, 1) for peer in range(of.gpus))
        return (PlanStep("glre", (MemoryMove(sources, (MemoryPart(gpu, "o", block, 1),)),), by_switch=True),)


class _StoringKernel(_KernelAlgorithm):
    """What ends with a wait for the stores of all others."""

    poison: bool = Field(False, description="no barrier: readers poll for data that is no poison")

    @property
    def _polled(self) -> Polled:
        return Polled.DATA if self.poison else Polled.NO

    def _cells(self, of: _Shape) -> tuple[int, int, int]:
        return of.gpus * of.blocks, of.gpus * of.blocks, 0

    def _all_stored(self, gpu: int, block: int, n: int, blocks: int) -> tuple[PlanStep, ...]:
        """The barrier, or the polls of what each GPU stores into this block's outputs."""
        if not self.poison:
            return self._meet(gpu, block, n)
        polls = (
            MemoryMove((MemoryPart(gpu, "o", peer * blocks + block, 1, self._polled),), ())
            for peer in range(n)
        )
        return (PlanStep("poll", tuple(polls)),)


class TwoshotMulticast(_StoringKernel):
    """All-reduce: every GPU loads its share of the sum, and stores it to all, through the switch"""

    name: ClassVar[str] = "twoshot_multicast"
    carries: ClassVar[frozenset[Collective]] = frozenset({Collective.ALL_REDUCE})

    def _block(self, gpu: int, block: int, of: _Shape) -> tuple[PlanStep, ...]:
        n, blocks, _ = of
        mine = gpu * blocks + block
        sources = tuple(MemoryPart(peer, "i", mine, 1) for peer in range(n))
        targets = tuple(MemoryPart(peer, "o", mine, 1, self._polled) for peer in range(n))
        both = PlanStep("glres", (MemoryMove(sources, targets),), by_switch=True)
        return (both, *self._all_stored(gpu, block, n, blocks))


class LsaAllToAll(_StoringKernel):
    """All-to-all: every GPU stores to every other, then a barrier or polling"""

    name: ClassVar[str] = "lsa_alltoall"
    carries: ClassVar[frozenset[Collective]] = frozenset({Collective.ALL_TO_ALL})

    def _block(self, gpu: int, block: int, of: _Shape) -> tuple[PlanStep, ...]:
        n, blocks, _ = of
        moves = tuple(
            MemoryMove(
                (MemoryPart(gpu, "i", peer * blocks + block, 1),),
                (MemoryPart(peer, "o", gpu * blocks + block, 1, self._polled),),
            )
            for peer in ((gpu + k) % n for k in range(n))
        )
        put = PlanStep("put", moves)
        return (put, *self._all_stored(gpu, block, n, blocks))


class GetDirect(_KernelAlgorithm):
    """All-gather: every GPU loads the shards of all others"""

    name: ClassVar[str] = "get_direct"
    carries: ClassVar[frozenset[Collective]] = frozenset({Collective.ALL_GATHER})

    def _cells(self, of: _Shape) -> tuple[int, int, int]:
        return of.blocks, of.gpus * of.blocks, 0

    def _block(self, gpu: int, block: int, of: _Shape) -> tuple[PlanStep, ...]:
        n, blocks, _ = of
        moves = tuple(
            MemoryMove((MemoryPart(peer, "i", block, 1),), (MemoryPart(gpu, "o", peer * blocks + block, 1),))
            for peer in ((gpu + k) % n for k in range(n))
        )
        return (PlanStep("get", moves),)


class TwoshotGet(_KernelAlgorithm):
    """All-reduce: every GPU loads its share from all, adds up, and loads the sums of all"""

    name: ClassVar[str] = "twoshot_get"
    carries: ClassVar[frozenset[Collective]] = frozenset({Collective.ALL_REDUCE})

    def _cells(self, of: _Shape) -> tuple[int, int, int]:
        return of.gpus * of.blocks, of.gpus * of.blocks, 0

    def _block(self, gpu: int, block: int, of: _Shape) -> tuple[PlanStep, ...]:
        n, blocks, _ = of
        mine, others = gpu * blocks + block, [(gpu + k) % n for k in range(1, n)]
        sources = tuple(MemoryPart(peer, "i", mine, 1) for peer in (gpu, *others))
        adds = PlanStep("rre", (MemoryMove(sources, (MemoryPart(gpu, "o", mine, 1),)),))
        moves = (
            MemoryMove((MemoryPart(peer, "o", at, 1),), (MemoryPart(gpu, "o", at, 1),))
            for peer in others
            for at in (peer * blocks + block,)
        )
        meet = self._meet(gpu, block, n)
        return (*meet, adds, *meet, PlanStep("get", tuple(moves)), *meet)


_PACKET_BYTES = 8
"""Data of a packet, and its flags."""


class _PacketKernel(_KernelAlgorithm):
    carries: ClassVar[frozenset[Collective]] = frozenset({Collective.ALL_REDUCE})

    def _threadfuls(self, n: int, size_bytes: int) -> int:
        """Blocks that a GPU's share fills, if each thread takes a packet."""
        return max(1, -(-size_bytes // (n * _PACKET_BYTES * self.threads)))

    def _active(self, n: int, size_bytes: int) -> int:
        return min(self.blocks, self._threadfuls(n, size_bytes))


class TwoshotPackets(_PacketKernel):
    """All-reduce: every GPU stores packets to all, adds up its share, and stores packets of that to all"""

    name: ClassVar[str] = "twoshot_packets"

    def _active(self, n: int, size_bytes: int) -> int:
        """Equally many for each peer, which they store to and read from."""
        return (n - 1) * max(1, min(self.blocks // (n - 1), self._threadfuls(n, size_bytes)))

    def _cells(self, of: _Shape) -> tuple[int, int, int]:
        cells = of.gpus * of.blocks
        return cells, cells, 2 * cells

    def _block(self, gpu: int, block: int, of: _Shape) -> tuple[PlanStep, ...]:
        n, blocks, size_bytes = of
        whole, each, peers = n * blocks, blocks // (n - 1), [(gpu + k) % n for k in range(1, n)]
        peer, count, at = peers[block // each], n - 1, block % each * (n - 1)

        def packets(where: int, first: int, count: int) -> MemoryPart:
            return MemoryPart(where, "s", first, count, Polled.PACKET)

        def plain(buffer: str, first: int, count: int) -> MemoryPart:
            return MemoryPart(gpu, buffer, first, count)

        theirs, mine = peer * blocks + at, gpu * blocks
        put = MemoryMove((plain("i", theirs, count),), (packets(peer, mine + at, count),))
        read = MemoryMove((packets(gpu, whole + theirs, count),), (plain("o", theirs, count),))
        steps = [PlanStep("ppkt", (put,)), PlanStep("upkt", (read,))]
        adders = min(blocks, self._threadfuls(n, size_bytes))
        first, past = blocks * block // adders, blocks * (block + 1) // adders
        if block < adders:
            came = (packets(gpu, one * blocks + first, past - first) for one in peers)
            going = (packets(one, whole + mine + first, past - first) for one in peers)
            parts = (plain(buffer, mine + first, past - first) for buffer in "io")
            own, total = parts
            steps.insert(1, PlanStep("recspkt", (MemoryMove((own, *came), (total, *going)),)))
        return tuple(steps)


class RingPackets(_PacketKernel):
    """All-reduce: packets go around, are added up on their way, and go around again (NCCL's LL)"""

    name: ClassVar[str] = "ring_packets"

    def _cells(self, of: _Shape) -> tuple[int, int, int]:
        cells = of.gpus * of.blocks
        return cells, cells, 2 * cells

    def _block(self, gpu: int, block: int, of: _Shape) -> tuple[PlanStep, ...]:
        n, blocks, _ = of
        after, steps = (gpu + 1) % n, []
        for turn in range(2 * n - 1):
            share = (gpu - 1 - turn) % n * blocks + block
            came = MemoryPart(gpu, "s", (turn > n - 1) * n * blocks + share, 1, Polled.PACKET)
            sent = MemoryPart(after, "s", (turn >= n - 1) * n * blocks + share, 1, Polled.PACKET)
            own = MemoryPart(gpu, "i", share, 1)
            sources = (own,) if turn == 0 else (own, came) if turn < n else (came,)
            kept = (MemoryPart(gpu, "o", share, 1),) if turn >= n - 1 else ()
            going = (sent,) if turn < 2 * n - 2 else ()
            steps.append(PlanStep("respkt", (MemoryMove(sources, (*kept, *going)),)))
        return tuple(steps)
