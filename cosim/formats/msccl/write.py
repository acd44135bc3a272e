"""A program to MSCCL XML, as MSCCL's own compiler lays it out."""

from __future__ import annotations

from collections.abc import Mapping
from xml.sax.saxutils import quoteattr

from cosim.formats.msccl.program import COLLECTIVES, MscclProgram, Step


def write_program(program: MscclProgram) -> str:
    """XML text; :func:`~cosim.formats.msccl.read.parse_program` gives the program again, field by field."""
    coll = {kind: name for name, kind in COLLECTIVES.items()}
    head: dict[str, str | int] = {
        "name": program.name,
        "proto": program.protocol,
        "nchannels": program.num_channels,
        "nchunksperloop": program.num_chunks,
        "ngpus": len(program.gpus),
        "coll": "custom" if program.collective is None else coll[program.collective],
        "inplace": int(program.in_place),
        "outofplace": int(program.out_of_place),
        **dict(program.extra),
    }
    lines = [f"<algo {_attributes(head)}>"]
    for number, gpu in enumerate(program.gpus):
        sizes = {"id": number, "i_chunks": gpu.i_chunks, "o_chunks": gpu.o_chunks, "s_chunks": gpu.s_chunks}
        lines.append(f"  <gpu {_attributes(sizes)}>")
        for block in gpu.blocks:
            which = {"id": block.number, "send": block.send, "recv": block.recv, "chan": block.channel}
            lines.append(f"    <tb {_attributes(which)}>")
            lines += [f"      <step {_attributes(_step(i, step))}/>" for i, step in enumerate(block.steps)]
            lines.append("    </tb>")
        lines.append("  </gpu>")
    lines.append("</algo>\n")
    return "\n".join(lines)


def _step(number: int, step: Step) -> dict[str, str | int]:
    block, its = step.waits_for if step.waits_for is not None else (-1, -1)
    return {
        "s": number,
        "type": step.kind,
        "srcbuf": step.src[0],
        "srcoff": step.src[1],
        "dstbuf": step.dst[0],
        "dstoff": step.dst[1],
        "cnt": step.count,
        "depid": block,
        "deps": its,
        "hasdep": int(step.signals),
    }


def _attributes(values: Mapping[str, str | int]) -> str:
    return " ".join(f"{key}={quoteattr(str(value))}" for key, value in values.items())
