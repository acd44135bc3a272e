"""MSCCL XML to a program. What can't be meant is refused, with file, line, GPU, thread block and step."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from cosim.errors import AlgorithmError, InputError, Location
from cosim.files.located_xml import Element, parse_xml, read_xml
from cosim.formats.msccl.program import (
    BUFFERS,
    COLLECTIVES,
    KINDS,
    PROTOCOLS,
    RECEIVES,
    SENDS,
    GpuProgram,
    MscclProgram,
    Step,
    ThreadBlock,
)

MAX_CHUNKS = 1 << 16
MAX_MOVES = 1 << 21
"""Chunks that all steps together may touch, and that all ranks together may end with."""
MAX_CHANNELS = 1 << 10
MAX_GPUS = 1 << 12

_ALGO = (
    "name", "coll", "proto", "nchannels", "nchunksperloop", "ngpus", "inplace", "outofplace",
)  # fmt: skip
_KEPT = ("minBytes", "maxBytes", "redop", "outofplace_only", "nthreads")
_GPU = ("id", "i_chunks", "o_chunks", "s_chunks")
_TB = ("id", "send", "recv", "chan")
_STEP = ("s", "type", "srcbuf", "srcoff", "dstbuf", "dstoff", "cnt", "depid", "deps", "hasdep")


def read_program(path: Path) -> MscclProgram:
    """The program of a file.

    Raises
    ------
    AlgorithmError
        A file that can't be read, isn't MSCCL XML, or says what can't be meant; names file and line.
    """
    return _program(read_xml(path, AlgorithmError))


def parse_program(content: bytes | str, file: str = "msccl.xml") -> MscclProgram:
    """The program of XML text; see :func:`read_program`."""
    return _program(parse_xml(content, file, AlgorithmError))


def _program(root: Element) -> MscclProgram:
    if root.tag != "algo":
        raise root.wrong("the root of MSCCL XML is <algo>")
    ignored: dict[str, None] = {}
    collective = root.text("coll")
    known = collective.replace("_", "").lower()
    if known not in COLLECTIVES and known != "custom":
        raise root.wrong(f"should be one of {', '.join(COLLECTIVES)}, custom", "coll")
    count = root.integer("ngpus", 1, MAX_GPUS)
    elements = _children(root, "gpu", ignored)
    if len(elements) != count:
        raise root.wrong(f"there are {len(elements)} <gpu> elements", "ngpus")
    channels = root.integer("nchannels", 1, MAX_CHANNELS, default=MAX_CHANNELS)
    num_chunks = root.integer("nchunksperloop", 1, MAX_CHUNKS)
    moves = [count * num_chunks]
    if moves[0] > MAX_MOVES:
        raise root.wrong(f"{count} GPUs of {num_chunks} chunks are more than the {MAX_MOVES} that are proved")
    gpus: dict[int, GpuProgram] = {}
    for element in elements:
        number = element.integer("id", 0, count - 1)
        if number in gpus:
            raise element.wrong("another <gpu> has this number", "id")
        gpus[number] = _gpu(element, number, count, channels, ignored, moves)
    used = 1 + max((block.channel for gpu in gpus.values() for block in gpu.blocks), default=0)
    in_place = root.integer("inplace", 0, 1, default=0) == 1
    return MscclProgram(
        name=root.text("name", "msccl"),
        collective=COLLECTIVES.get(known),
        protocol=root.one_of("proto", PROTOCOLS, "Simple"),
        num_channels=used if "nchannels" not in root.attributes else channels,
        num_chunks=num_chunks,
        in_place=in_place,
        out_of_place=root.integer("outofplace", 0, 1, default=int(not in_place)) == 1,
        gpus=tuple(gpus[number] for number in range(count)),
        extra=tuple((key, value) for key, value in root.attributes.items() if key in _KEPT),
        file=root.file,
        ignored=(*_unknown(root, (*_ALGO, *_KEPT)), *ignored),
    )


def _gpu(
    element: Element, number: int, count: int, channels: int, ignored: dict[str, None], moves: list[int]
) -> GpuProgram:
    ignored.update(dict.fromkeys(_unknown(element, _GPU)))
    i, o, s = (element.integer(f"{buffer}_chunks", 0, MAX_CHUNKS, default=0) for buffer in BUFFERS)
    gpu = GpuProgram(i, o, s, (), element.line)
    blocks: dict[int, ThreadBlock] = {}
    for inner in _children(element, "tb", ignored):
        ignored.update(dict.fromkeys(_unknown(inner, _TB)))
        block = inner.integer("id", 0, 1 << 14)
        if block in blocks:
            raise inner.wrong(f"GPU {number} has another thread block {block}", "id")
        peers = [inner.integer(way, -1, count - 1) for way in ("send", "recv")]
        for way, peer in zip(("send", "recv"), peers, strict=True):
            if peer == number:
                raise inner.wrong(f"GPU {number} can't be its own peer; -1 is none", way)
        channel = inner.integer("chan", 0, channels - 1, default=0)
        steps: list[Step] = []
        for step in _children(inner, "step", ignored):
            ignored.update(dict.fromkeys(_unknown(step, _STEP)))
            where = f"GPU {number}, tb {block}, step {len(steps)}"
            steps.append(_step(step, gpu, peers[0], peers[1], len(steps), where))
            moves[0] += steps[-1].count
            if moves[0] > MAX_MOVES:
                raise step.wrong(f"{where}: more than {MAX_MOVES} chunks are moved, which is not proved")
        blocks[block] = ThreadBlock(block, peers[0], peers[1], channel, tuple(steps), inner.line)
    ordered = tuple(blocks[block] for block in sorted(blocks))
    found = replace(gpu, blocks=ordered)
    _check_waits(element, number, found)
    return found


def _step(element: Element, gpu: GpuProgram, send: int, recv: int, number: int, where: str) -> Step:
    try:
        if element.integer("s", 0, 1 << 20, default=number) != number:
            raise element.wrong(f"should be {number}: steps of a thread block run in order", "s")
        kind = element.one_of("type", KINDS)
        waits_for = None
        block = element.integer("depid", -1, 1 << 14, default=-1)
        if block >= 0:
            waits_for = (block, element.integer("deps", 0, 1 << 20))
        signals = element.integer("hasdep", 0, 1, default=0) == 1
        if kind == "nop":
            return Step("nop", ("i", -1), ("o", -1), 0, waits_for, signals, element.line)
        if kind in SENDS and send < 0:
            raise element.wrong('sends, but its thread block has send="-1"; give it a peer', "type")
        if kind in RECEIVES and recv < 0:
            raise element.wrong('receives, but its thread block has recv="-1"; give it a peer', "type")
        count = element.integer("cnt", 1, MAX_CHUNKS, default=1)
        places = []
        for way in ("src", "dst"):
            buffer = element.one_of(f"{way}buf", BUFFERS)
            offset = element.integer(f"{way}off", -1, MAX_CHUNKS)
            if _is_own(kind, way) and not 0 <= offset <= gpu.chunks(buffer) - count:
                last = gpu.chunks(buffer) - 1
                raise element.wrong(
                    f"chunks {offset}..{offset + count - 1} of buffer {buffer}, which has "
                    + (f"0..{last}" if last >= 0 else f"none ({buffer}_chunks is 0)"),
                    f"{way}off",
                )
            places.append((buffer, offset))
    except InputError as error:
        raise AlgorithmError(f"{where}: {error.message}", location=error.location, hint=error.hint) from None
    return Step(kind, places[0], places[1], count, waits_for, signals, element.line)


def _is_own(kind: str, way: str) -> bool:
    """Whether the step reads (src) or writes (dst) that place on its own GPU."""
    return kind not in ("r", "rcs") if way == "src" else kind not in ("s", "rrs")


def _check_waits(element: Element, number: int, gpu: GpuProgram) -> None:
    at = {block.number: block for block in gpu.blocks}
    for block in gpu.blocks:
        for index, step in enumerate(block.steps):
            if step.waits_for is None:
                continue
            other, its = step.waits_for
            where = f"GPU {number}, tb {block.number}, step {index}"
            problem = None
            if other not in at or its >= len(at[other].steps):
                problem = f"waits for step {its} of tb {other}, which the GPU lacks"
            elif other == block.number and its >= index:
                problem = f"waits for step {its} of its own thread block, which comes after it"
            elif other != block.number and not at[other].steps[its].signals:
                problem = (
                    f'waits for step {its} of tb {other}, which has hasdep="0" (line '
                    f'{at[other].steps[its].line}) and so never says that it is done; it needs hasdep="1"'
                )
            if problem:
                raise AlgorithmError(
                    f"{where}: {problem}", location=Location(element.file, step.line, "<step> depid")
                )


def _children(element: Element, tag: str, ignored: dict[str, None]) -> list[Element]:
    ignored.update(dict.fromkeys(f"<{other.tag}>" for other in element.children if other.tag != tag))
    return [child for child in element.children if child.tag == tag]


def _unknown(element: Element, known: tuple[str, ...]) -> list[str]:
    return [f"<{element.tag}> {key}" for key in element.attributes if key not in known]
