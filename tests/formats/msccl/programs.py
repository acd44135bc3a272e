"""MSCCL programs for tests: the real files, an executor that knows nothing of the prover, and mutations."""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import replace

from hypothesis import strategies as st

from cosim.formats.msccl.program import KINDS, GpuProgram, MscclProgram, Step, ThreadBlock
from cosim.formats.msccl.read import parse_program
from cosim.pattern.template import Collective
from tests.inputs import find

FILES = sorted(find("msccl").glob("*.xml"))
RING_BY_MSCCLANG = find("chakra/custom_ring_allreduce_8npus_1MB/custom_allreduce.xml")

Data = Counter[tuple[int, int]]
"""How often each (GPU, chunk of its input) is in a value."""


class StuckError(Exception):
    """Steps are left, and none can run."""


def execute(
    program: MscclProgram, collective: Collective, order: random.Random
) -> list[dict[str, list[Data]]]:
    """Run the steps in a random order on values; each GPU's buffers at the end.

    Written from MSCCL's runtime, not from the prover: buffers are lists, connections are queues.
    """
    n = len(program.gpus)
    size = max([program.num_chunks] + [max(g.i_chunks, g.o_chunks, g.s_chunks) for g in program.gpus])
    buffers = []
    for gpu in range(n):
        empty: dict[str, list[Data]] = {b: [Counter() for _ in range(size)] for b in "ios"}
        share = program.num_chunks // n
        if collective is Collective.ALL_GATHER:
            for k in range(share):
                place = ("o", gpu * share + k) if program.in_place else ("i", k)
                empty[place[0]][place[1]] = Counter({(gpu, k): 1})
        else:
            for k in range(program.num_chunks):
                empty["i"][k] = Counter({(gpu, k): 1})
        if program.in_place and collective is not Collective.ALL_GATHER:
            empty["o"] = empty["i"]
        buffers.append(empty)
    queues: dict[tuple[int, int, int], deque[list[Data]]] = {}
    at = {(g, b): 0 for g, gpu in enumerate(program.gpus) for b in range(len(gpu.blocks))}
    position = [{tb.number: b for b, tb in enumerate(gpu.blocks)} for gpu in program.gpus]
    while True:
        runnable = []
        for (g, b), index in at.items():
            tb = program.gpus[g].blocks[b]
            if index == len(tb.steps):
                continue
            step = tb.steps[index]
            ready = step.waits_for is None or at[g, position[g][step.waits_for[0]]] > step.waits_for[1]
            if ready and step.kind.startswith("r") and step.kind != "re":
                ready = bool(queues.get((tb.recv, g, tb.channel)))
            if ready:
                runnable.append((g, b))
        if not runnable:
            break
        g, b = order.choice(runnable)
        tb = program.gpus[g].blocks[b]
        _run(tb, tb.steps[at[g, b]], g, buffers[g], queues)
        at[g, b] += 1
    if any(index < len(program.gpus[g].blocks[b].steps) for (g, b), index in at.items()):
        raise StuckError
    return buffers


def _run(
    tb: ThreadBlock,
    step: Step,
    gpu: int,
    buffers: dict[str, list[Data]],
    queues: dict[tuple[int, int, int], deque[list[Data]]],
) -> None:
    def own(place: tuple[str, int]) -> list[Data]:
        return [buffers[place[0]][place[1] + k].copy() for k in range(step.count)]

    if step.kind == "nop":
        return
    kind = step.kind
    if kind in ("s", "cpy", "re"):
        value = own(step.src)
    else:
        value = queues[tb.recv, gpu, tb.channel].popleft()
        if kind in ("rrc", "rrs", "rrcs"):
            value = [one + two for one, two in zip(value, own(step.src), strict=True)]
    if kind == "re":
        value = [one + two for one, two in zip(value, own(step.dst), strict=True)]
    if kind in ("r", "rcs", "rrc", "rrcs", "cpy", "re"):
        for k, each in enumerate(value):
            buffers[step.dst[0]][step.dst[1] + k] = each
    if kind in ("s", "rcs", "rrs", "rrcs"):
        queues.setdefault((gpu, tb.send, tb.channel), deque()).append(value)


def is_right(program: MscclProgram, collective: Collective, buffers: list[dict[str, list[Data]]]) -> bool:
    """Whether every GPU ends with what the collective promises."""
    n = len(program.gpus)
    share = program.num_chunks // n
    for gpu, its in enumerate(buffers):
        if collective is Collective.ALL_REDUCE:
            due = [Counter({(rank, k): 1 for rank in range(n)}) for k in range(program.num_chunks)]
            got = its["o"][: program.num_chunks]
        elif collective is Collective.REDUCE_SCATTER:
            due = [Counter({(rank, gpu * share + k): 1 for rank in range(n)}) for k in range(share)]
            first = gpu * share if program.in_place else 0
            got = its["o"][first : first + share]
        elif collective is Collective.ALL_GATHER:
            due = [Counter({(rank, k): 1}) for rank in range(n) for k in range(share)]
            got = its["o"][: program.num_chunks]
        else:
            due = [Counter({(rank, gpu * share + k): 1}) for rank in range(n) for k in range(share)]
            got = its["o"][: program.num_chunks]
        if got != due:
            return False
    return True


def with_step(
    program: MscclProgram, place: tuple[int, int, int], change: Callable[[Step], Step | None]
) -> MscclProgram:
    """The program with one step changed, or left out where ``change`` gives None."""
    g, b, s = place
    gpu = program.gpus[g]
    block = gpu.blocks[b]
    new = change(block.steps[s])
    kept = (*block.steps[:s], *(() if new is None else (new,)), *block.steps[s + 1 :])
    blocks = (*gpu.blocks[:b], replace(block, steps=kept), *gpu.blocks[b + 1 :])
    gpus = (*program.gpus[:g], replace(gpu, blocks=blocks), *program.gpus[g + 1 :])
    return replace(program, gpus=gpus)


def step_places(program: MscclProgram) -> list[tuple[int, int, int]]:
    """Every step."""
    return [
        (g, b, s)
        for g, gpu in enumerate(program.gpus)
        for b, block in enumerate(gpu.blocks)
        for s in range(len(block.steps))
    ]


@st.composite
def any_program(draw: st.DrawFn) -> MscclProgram:
    """A well-formed program that need not do anything sensible: for reading and writing."""
    n = draw(st.integers(2, 4))
    chunks = draw(st.integers(1, 6))
    gpus = []
    for gpu in range(n):
        sizes = [draw(st.integers(1, 8)) for _ in range(3)]
        blocks: list[ThreadBlock] = []
        for number in range(draw(st.integers(0, 3))):
            peers = st.sampled_from([-1, *(peer for peer in range(n) if peer != gpu)])
            send, recv = draw(peers), draw(peers)
            steps: list[Step] = []
            for _ in range(draw(st.integers(0, 4))):
                fits = [
                    kind
                    for kind in KINDS
                    if (send >= 0 or "s" not in kind) and (recv >= 0 or kind in ("s", "cpy", "re", "nop"))
                ]
                kind = draw(st.sampled_from(fits))
                waits: tuple[int, int] | None = None
                waiting: bool = draw(st.booleans())
                ready = [(tb.number, s) for tb in blocks for s, step in enumerate(tb.steps) if step.signals]
                if ready and waiting:
                    waits = draw(st.sampled_from(ready))
                signals: bool = draw(st.booleans())
                if kind == "nop":
                    steps.append(Step(kind, ("i", -1), ("o", -1), 0, waits, signals))
                    continue
                places = [
                    (buffer, draw(st.integers(0, sizes["ios".index(buffer)] - 1)))
                    for buffer in (draw(st.sampled_from("ios")), draw(st.sampled_from("ios")))
                ]
                steps.append(Step(kind, places[0], places[1], 1, waits, signals))
            blocks.append(ThreadBlock(number, send, recv, draw(st.integers(0, 3)), tuple(steps)))
        gpus.append(GpuProgram(sizes[0], sizes[1], sizes[2], tuple(blocks)))
    extra = draw(st.sampled_from([(), (("minBytes", "64"),), (("minBytes", "1"), ("redop", 'sum "x" <&'))]))
    name = draw(
        st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S")), min_size=1, max_size=9)
    )
    kinds = [None, Collective.ALL_REDUCE, Collective.ALL_GATHER, Collective.BROADCAST, Collective.ALL_TO_ALL]
    return MscclProgram(
        name=name,
        collective=draw(st.sampled_from(kinds)),
        protocol=draw(st.sampled_from(["Simple", "LL", "LL128"])),
        num_channels=draw(st.integers(4, 9)),
        num_chunks=chunks,
        in_place=draw(st.booleans()),
        out_of_place=draw(st.booleans()),
        gpus=tuple(gpus),
        extra=extra,
    )


def fuzz_targets() -> list[tuple[str, list[bytes], Callable[[bytes], object]]]:
    """(name, valid files, reader): a reader of mutated files may raise a CosimError, and nothing else."""
    from cosim.formats.msccl.program_template import program_template
    from cosim.formats.msccl.prove import collective_of, prove_schedule
    from cosim.formats.msccl.schedule import schedule
    from cosim.pattern.costs import Costs

    def read(content: bytes) -> object:
        plan = schedule(parse_program(content))
        prove_schedule(
            plan,
            collective_of(plan.program, Collective.ALL_REDUCE if plan.program.collective is None else None),
        )
        return program_template(plan, plan.program.collective or Collective.ALL_REDUCE, 1 << 20, Costs())

    seeds = [path.read_bytes() for path in FILES if path.stat().st_size < 50_000] or [SMALL_RING.encode()]
    return [("msccl", [*seeds, SMALL_RING.encode()], read)]


SMALL_RING = """<algo name="small" nchannels="1" nchunksperloop="2" ngpus="2" coll="allreduce" inplace="1">
  <gpu id="0" i_chunks="2" o_chunks="0" s_chunks="0">
    <tb id="0" send="1" recv="1" chan="0">
      <step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0"/>
      <step s="1" type="rrc" srcbuf="i" srcoff="1" dstbuf="i" dstoff="1"/>
      <step s="2" type="s" srcbuf="i" srcoff="1" dstbuf="i" dstoff="1"/>
      <step s="3" type="r" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0"/>
    </tb>
  </gpu>
  <gpu id="1" i_chunks="2" o_chunks="0" s_chunks="0">
    <tb id="0" send="0" recv="0" chan="0">
      <step s="0" type="s" srcbuf="i" srcoff="1" dstbuf="i" dstoff="1"/>
      <step s="1" type="rrc" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0"/>
      <step s="2" type="s" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0"/>
      <step s="3" type="r" srcbuf="i" srcoff="1" dstbuf="i" dstoff="1"/>
    </tb>
  </gpu>
</algo>
"""
