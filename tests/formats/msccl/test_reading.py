"""MSCCL XML read and written: nothing lost, each mistake refused with its line and what would be right."""

from __future__ import annotations

import contextlib
import re
from dataclasses import fields, replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cosim.errors import AlgorithmError, CosimError
from cosim.formats.msccl.program import MscclProgram
from cosim.formats.msccl.read import parse_program, read_program
from cosim.formats.msccl.write import write_program
from cosim.pattern.template import Collective
from tests.formats.msccl.programs import FILES, SMALL_RING, any_program, fuzz_targets
from tests.inputs import needs


@settings(max_examples=80, deadline=None)
@given(program=any_program())
def test_what_is_written_is_read_back_field_by_field(program: MscclProgram) -> None:
    back = parse_program(write_program(program))
    for field in fields(MscclProgram):
        if field.compare:
            assert getattr(back, field.name) == getattr(program, field.name), field.name


@needs("msccl")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_production_files_survive_reading_and_writing(path: Path) -> None:
    program = read_program(path)
    assert parse_program(write_program(program)) == program
    assert not program.ignored


def test_unknown_names_are_reported_not_dropped() -> None:
    xml = SMALL_RING.replace('inplace="1"', 'inplace="1" colour="red"').replace("<tb ", '<tb speed="9" ', 1)
    program = parse_program(xml.replace("</algo>", "<note/></algo>"))
    assert program.ignored == ("<algo> colour", "<note>", "<tb> speed")
    assert replace(program, ignored=()) == parse_program(SMALL_RING)


def test_custom_takes_the_collective_from_who_asks() -> None:
    from cosim.formats.msccl.prove import prove_program

    program = parse_program(SMALL_RING.replace("allreduce", "custom"))
    assert program.collective is None
    assert prove_program(program, Collective.ALL_REDUCE).collective is Collective.ALL_REDUCE
    with pytest.raises(AlgorithmError, match="nothing says which"):
        prove_program(program)
    with pytest.raises(AlgorithmError, match="is an all_reduce, and is to carry an all_gather"):
        prove_program(parse_program(SMALL_RING), Collective.ALL_GATHER)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('ngpus="2"', 'ngpus="3"', "msccl.xml:1: <algo> ngpus=\"3\": there are 2 <gpu> elements"),
        ('ngpus="2"', 'ngpus="1000000000"', "should be a whole number from 1 to 4096"),
        ('nchunksperloop="2"', 'nchunksperloop="1000000000000"', "should be a whole number from 1 to 65536"),
        ('coll="allreduce"', 'coll="allrduce"', "should be one of allreduce, allgather"),
        ('type="rrc"', 'type="rcc"', "GPU 0, tb 0, step 1: should be one of s, r, rcs, rrc"),
        ('send="1" recv="1"', 'send="-1" recv="1"', "GPU 0, tb 0, step 0: sends, but its thread block"),
        ('send="1" recv="1"', 'send="0" recv="1"', "GPU 0 can't be its own peer"),
        ('send="1" recv="1"', 'send="7" recv="1"', "should be a whole number from -1 to 1"),
        ('srcoff="1" dstbuf="i"', 'srcoff="2" dstbuf="i"', "chunks 2..2 of buffer i, which has 0..1"),
        ('dstbuf="i" dstoff="1"/>', 'dstbuf="s" dstoff="0"/>', "buffer s, which has none (s_chunks is 0)"),
        ('dstoff="0"/>', 'dstoff="0" cnt="1000000000000"/>', "should be a whole number from 1 to 65536"),
        ('s="1" type', 's="2" type', "should be 1: steps of a thread block run in order"),
        ('dstoff="1"/>', 'dstoff="1" depid="4" deps="0"/>', "waits for step 0 of tb 4, which the GPU lacks"),
        ('dstoff="1"/>', 'dstoff="1" depid="0" deps="3"/>', "its own thread block, which comes after it"),
        ('<gpu id="1"', '<gpu id="0"', "another <gpu> has this number"),
        ("<tb ", "<tb><step/></tb><tb ", "has no attribute 'id'"),
        ("</algo>", "", "not XML: no element found"),
        ("<algo", "<!DOCTYPE a [<!ENTITY b 'c'>]><algo", "declares an entity, which is not read"),
        ("<algo", "<system", "not XML: mismatched tag"),
    ],
)  # fmt: skip
def test_mistakes_are_refused_with_line_and_remedy(old: str, new: str, says: str) -> None:
    assert old in SMALL_RING
    with pytest.raises(AlgorithmError) as caught:
        parse_program(SMALL_RING.replace(old, new, 1))
    assert says in str(caught.value)
    assert caught.value.location is not None
    assert caught.value.location.line is not None


def test_a_file_that_is_missing_is_said(tmp_path: Path) -> None:
    with pytest.raises(AlgorithmError, match=r"can't read .*none\.xml: No such file"):
        read_program(tmp_path / "none.xml")


TARGETS = fuzz_targets()


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_damaged_files_raise_only_our_errors(data: st.DataObject) -> None:
    _, seeds, read = TARGETS[data.draw(st.integers(0, len(TARGETS) - 1))]
    content = bytearray(seeds[data.draw(st.integers(0, len(seeds) - 1))])
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(content) - 1))
        kind = data.draw(st.sampled_from(["byte", "cut", "number", "double"]))
        if kind == "byte":
            content[at] = data.draw(st.integers(0, 255))
        elif kind == "cut":
            del content[at : at + data.draw(st.integers(1, 200))]
        elif kind == "double":
            content[at:at] = content[at : at + 120]
        else:
            digits = [i for i, byte in enumerate(content) if 48 <= byte <= 57]
            if digits:
                where = data.draw(st.sampled_from(digits))
                content[where : where + 1] = data.draw(
                    st.sampled_from([b"-1", b"999999999999", b"7", b"", b"1e9"])
                )
        if not content:
            return
    with contextlib.suppress(CosimError):
        read(bytes(content))


WRITTEN = {
    "algo": ("name", "proto", "nchannels", "nchunksperloop", "ngpus", "coll", "inplace", "outofplace"),
    "gpu": ("id", "i_chunks", "o_chunks", "s_chunks"),
    "tb": ("id", "send", "recv", "chan"),
    "step": ("type", "srcbuf", "srcoff", "dstbuf", "dstoff", "cnt", "depid", "deps", "hasdep"),
}
EVERYTHING = """<algo name="all" proto="LL" nchannels="7" nchunksperloop="4" ngpus="2" coll="allgather"
 inplace="1" outofplace="1"><gpu id="0" i_chunks="1" o_chunks="2" s_chunks="3"/>
<gpu id="1" i_chunks="4" o_chunks="5" s_chunks="6">
<tb id="3" send="0" recv="0" chan="1">
<step type="s" srcbuf="s" srcoff="1" dstbuf="o" dstoff="2" cnt="2" hasdep="1"/></tb>
<tb id="4" send="0" recv="0" chan="2">
<step type="r" srcbuf="s" srcoff="1" dstbuf="o" dstoff="2" cnt="2" depid="3" deps="0" hasdep="1"/></tb>
</gpu></algo>"""


@pytest.mark.parametrize(("tag", "key"), [(tag, key) for tag, keys in WRITTEN.items() for key in keys])
def test_no_attribute_is_written_in_vain(tag: str, key: str) -> None:
    """Without any one attribute that is written, what is read differs, or can't be read."""
    program = parse_program(EVERYTHING)
    lines = write_program(program).splitlines()
    number = max(i for i, line in enumerate(lines) if line.strip().startswith(f"<{tag} "))
    assert f' {key}="' in lines[number]
    lines[number] = re.sub(rf' {key}="[^"]*"', "", lines[number])
    try:
        back = parse_program("\n".join(lines))
    except AlgorithmError:
        return
    assert back != program
