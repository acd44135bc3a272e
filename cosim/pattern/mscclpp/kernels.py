"""Kernels that are known, as plans: all-reduce by multicast, all-to-all by stores, all-gather by loads.

Their structure is that of NVIDIA/nccl ``contrib/custom_algos`` (Apache-2.0), read and written anew:

``oneshot_multicast``
    Each GPU loads all of the sum through the switch, which adds up (multimem.ld_reduce).
``twoshot_multicast``
    Each GPU loads its share of the sum, and stores it to all through the switch (multimem.st). Then a
    barrier; with ``poison`` none: a GPU polls its output until no place holds poison.
``lsa_alltoall``
    Each GPU stores to every other; then a barrier, or polling (``poison``).
``get_direct``
    Each GPU loads the shards of all others.

Who calls has all ranks meet before, as there, and buffers poisoned.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

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


class _KernelAlgorithm(Algorithm):
    checks_data: ClassVar[bool] = True
    splits: ClassVar[bool] = False

    blocks: int = Field(4, ge=1, le=1024, description="thread blocks of each GPU")
    threads: int = Field(1024, ge=32, le=1024, description="of a block")
    launch: TimePs = Field(0, ge=0, description="of the kernel, and its end: added once")

    @abstractmethod
    def _block(self, gpu: int, block: int, n: int, blocks: int) -> tuple[PlanStep, ...]:
        """The steps of a thread block, one of so many."""

    @abstractmethod
    def _cells(self, n: int, blocks: int) -> tuple[int, int]:
        """Cells of input and of output."""

    def _active(self, size_bytes: int) -> int:
        """Blocks that have something to do."""
        del size_bytes
        return self.blocks

    def plan(self, collective: Collective, n: int, size_bytes: int) -> KernelPlan:
        """The kernel as a plan for so many GPUs."""
        blocks = self._active(size_bytes)
        inputs, outputs = self._cells(n, blocks)
        gpus = tuple(
            PlanGpu(
                {"i": inputs, "o": outputs, "s": 0},
                tuple(PlanBlock(block, self._block(gpu, block, n, blocks)) for block in range(blocks)),
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

    def _cells(self, n: int, blocks: int) -> tuple[int, int]:
        del n
        return blocks, blocks

    def _active(self, size_bytes: int) -> int:
        """Threads take 16 bytes each, in turn: the blocks that come to something."""
        return max(1, min(self.blocks, -(-size_bytes // (16 * self.threads))))

    def _block(self, gpu: int, block: int, n: int, blocks: int) -> tuple[PlanStep, ...]:
        del blocks
        sources = tuple(MemoryPart(peer, "i", block, 1) for peer in range(n))
        return (PlanStep("glre", (MemoryMove(sources, (MemoryPart(gpu, "o", block, 1),)),), by_switch=True),)


class _StoringKernel(_KernelAlgorithm):
    """What ends with a wait for the stores of all others."""

    poison: bool = Field(False, description="no barrier: readers poll for data that is no poison")

    @property
    def _polled(self) -> Polled:
        return Polled.DATA if self.poison else Polled.NO

    def _cells(self, n: int, blocks: int) -> tuple[int, int]:
        return n * blocks, n * blocks

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

    def _block(self, gpu: int, block: int, n: int, blocks: int) -> tuple[PlanStep, ...]:
        mine = gpu * blocks + block
        sources = tuple(MemoryPart(peer, "i", mine, 1) for peer in range(n))
        targets = tuple(MemoryPart(peer, "o", mine, 1, self._polled) for peer in range(n))
        both = PlanStep("glres", (MemoryMove(sources, targets),), by_switch=True)
        return (both, *self._all_stored(gpu, block, n, blocks))


class LsaAllToAll(_StoringKernel):
    """All-to-all: every GPU stores to every other, then a barrier or polling"""

    name: ClassVar[str] = "lsa_alltoall"
    carries: ClassVar[frozenset[Collective]] = frozenset({Collective.ALL_TO_ALL})

    def _block(self, gpu: int, block: int, n: int, blocks: int) -> tuple[PlanStep, ...]:
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

    def _cells(self, n: int, blocks: int) -> tuple[int, int]:
        return blocks, n * blocks

    def _block(self, gpu: int, block: int, n: int, blocks: int) -> tuple[PlanStep, ...]:
        moves = tuple(
            MemoryMove((MemoryPart(peer, "i", block, 1),), (MemoryPart(gpu, "o", peer * blocks + block, 1),))
            for peer in ((gpu + k) % n for k in range(n))
        )
        return (PlanStep("get", moves),)
