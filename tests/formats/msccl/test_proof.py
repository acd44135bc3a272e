"""The proof of MSCCL programs against an executor that runs them on values in random orders."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cosim.errors import AlgorithmError
from cosim.formats.msccl.program import MscclProgram, Step
from cosim.formats.msccl.prove import prove_program
from cosim.formats.msccl.read import parse_program, read_program
from cosim.pattern.template import Collective
from tests.formats.msccl.programs import (
    FILES,
    SMALL_RING,
    StuckError,
    execute,
    is_right,
    step_places,
    with_step,
)
from tests.inputs import needs

needs_files = needs("msccl")


@needs_files
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_production_files_are_proved_and_come_out_right_on_values(path: Path) -> None:
    program = read_program(path)
    proof = prove_program(program)
    assert sum(proof.steps.values()) == program.num_steps
    assert program.collective is not None
    assert is_right(program, program.collective, execute(program, program.collective, random.Random(1)))


def test_small_ring_says_what_was_proved() -> None:
    said = str(prove_program(parse_program(SMALL_RING)))
    assert said.splitlines()[0] == "proved: small, all_reduce over 2 GPUs, in place"
    assert "4 messages on 1 channel (Simple)" in said
    assert "2 thread blocks, at most 1 on a GPU; 8 steps: 2 r, 2 rrc, 4 s" in said


def _outcome(program: MscclProgram, collective: Collective, tries: int) -> str:
    """The worst of some random orders: stuck, wrong, right."""
    worst = "right"
    for seed in range(tries):
        try:
            right = is_right(program, collective, execute(program, collective, random.Random(seed)))
        except StuckError:
            return "stuck"
        if not right:
            worst = "wrong"
    return worst


def _changes(step: Step, chunks: int) -> st.SearchStrategy[Step | None]:
    move = st.integers(0, chunks - 1)
    return st.one_of(
        st.none(),
        st.builds(lambda k: replace(step, src=(step.src[0], k)), move),
        st.builds(lambda k: replace(step, dst=(step.dst[0], k)), move),
        st.just(replace(step, waits_for=None)),
        st.just(
            replace(step, kind={"r": "rrc", "rrc": "r", "rcs": "rrcs", "re": "cpy"}.get(step.kind, step.kind))
        ),
    )


BASES = [parse_program(SMALL_RING)] + [
    read_program(path) for path in FILES if "r48" in path.stem or "hier" in path.stem
]


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_what_is_proved_is_right_in_every_order_tried(data: st.DataObject) -> None:
    base = data.draw(st.sampled_from(BASES))
    place = data.draw(st.sampled_from(step_places(base)))
    g, b, s = place
    new = data.draw(_changes(base.gpus[g].blocks[b].steps[s], base.gpus[g].i_chunks or 1))
    program = with_step(base, place, lambda _: new)
    assert program.collective is not None
    try:
        prove_program(program)
    except AlgorithmError as error:
        refused = str(error)
        outcome = _outcome(program, program.collective, 2)
        # A refusal for anything but a race (which random orders need not meet) is seen on values.
        if "race" not in refused and "reads" not in refused and "no send meets" not in refused:
            assert outcome != "right" or "no receive meets" in refused, refused
        if outcome == "stuck":
            assert "deadlock" in refused or "meets it" in refused, refused
        return
    assert _outcome(program, program.collective, 2) == "right"


def _small(change: dict[tuple[int, int], dict[str, object]]) -> MscclProgram:
    """The small ring with steps (gpu, step) changed."""
    program = parse_program(SMALL_RING, "small.xml")
    for (gpu, step), values in change.items():
        program = with_step(program, (gpu, 0, step), lambda it, v=values: replace(it, **v))  # type: ignore[misc]
    return program


@pytest.mark.parametrize(
    ("change", "says"),
    [
        # GPU 1 keeps what it gets instead of adding it: GPU 0's chunk 0 lacks GPU 1's part.
        (
            {(1, 1): {"kind": "r"}},
            ("GPU 0 ends with a wrong chunk 0", "lacks what comes from GPU 1", "step 3", "line 7"),
        ),
        ({(0, 3): {"kind": "rrc"}}, ("counts twice what comes from GPU 0", "step 3 (rrc from GPU 1")),
        ({(1, 2): {"src": ("i", 1)}}, ("holds chunk 1 of the data where chunk 0 is due",)),
        ({(0, 1): {"src": ("i", 0)}}, ("GPU 0, tb 0, step 1 (rrc", "adds chunk 1 to chunk 0")),
        (
            {(0, 3): {"dst": ("s", 0)}},
            ("GPU 0 ends with a wrong chunk 0", "lacks what comes from GPU 1", "never written"),
        ),
        ({(0, 0): {"src": ("s", 0)}}, ("reads chunk 0 of GPU 0's scratch, which nothing ever writes",)),
        ({(0, 0): {"count": 2}}, ("expects cnt=1, but gets cnt=2 from GPU 0, tb 0, step 0",)),
        (
            {(1, 3): {"kind": "nop"}},
            ("no receive meets it: GPU 0 sends 2 messages to GPU 1 on channel 0, which receives 1",),
        ),
    ],
)  # fmt: skip
def test_wrong_results_say_where_and_what(
    change: dict[tuple[int, int], dict[str, object]], says: tuple[str, ...]
) -> None:
    with pytest.raises(AlgorithmError) as caught:
        prove_program(_small(change))
    for each in says:
        assert each in str(caught.value)
    assert str(caught.value).startswith("small.xml:")


def test_deadlock_names_who_waits_for_whom() -> None:
    swapped = _small({})
    for gpu in (0, 1):
        steps = swapped.gpus[gpu].blocks[0].steps
        swapped = with_step(swapped, (gpu, 0, 0), lambda _, s=steps: s[1])  # type: ignore[misc]
        swapped = with_step(swapped, (gpu, 0, 1), lambda _, s=steps: s[0])  # type: ignore[misc]
    with pytest.raises(AlgorithmError) as caught:
        prove_program(swapped)
    said = str(caught.value)
    assert "small deadlocks: 8 steps can never run" in said
    assert (
        "GPU 0, tb 0, step 0 (rrc from GPU 1 on channel 0; line 5) waits for GPU 1, tb 0, step 1 (s to GPU 0"
        in said
    )
    with pytest.raises(StuckError):
        execute(swapped, Collective.ALL_REDUCE, random.Random(0))


def test_a_connection_that_must_hold_nine_messages_deadlocks() -> None:
    """GPU 0 sends nine messages before it takes what GPU 1 sends first; with eight slots neither goes on."""

    def program(count: int) -> str:
        send = '<step s="{}" type="s" srcbuf="i" srcoff="{}" dstbuf="o" dstoff="{}" cnt="1"/>'
        recv = '<step s="{}" type="r" srcbuf="i" srcoff="{}" dstbuf="o" dstoff="{}" cnt="1"/>'
        sends, later = range(count), range(count, 2 * count)
        out = [f'<algo name="deep" nchunksperloop="{2 * count}" ngpus="2" coll="allgather" nchannels="1">']
        for gpu in (0, 1):
            own = "".join(send.format(k, k, k) for k in sends)
            into = "".join(recv.format(s, k, k + count * (1 - gpu)) for k, s in enumerate(later))
            at = f'srcbuf="i" srcoff="0" dstbuf="o" dstoff="{count * gpu}"'
            mine = f'<step s="0" type="cpy" {at} cnt="{count}"/>'
            out.append(
                f'<gpu id="{gpu}" i_chunks="{count}" o_chunks="{2 * count}" s_chunks="0">'
                f'<tb id="0" send="{1 - gpu}" recv="{1 - gpu}" chan="0">{own}{into}</tb>'
                f'<tb id="1" send="-1" recv="-1" chan="0">{mine}</tb></gpu>'
            )
        return "".join(out) + "</algo>"

    assert prove_program(parse_program(program(8))).slots == 8
    with pytest.raises(AlgorithmError, match=r"deadlocks where a connection holds 8 messages"):
        prove_program(parse_program(program(9)))


def test_races_are_named_with_both_steps() -> None:
    """A copy of what another thread block receives, without waiting for it."""
    xml = SMALL_RING.replace(
        '    </tb>\n  </gpu>\n  <gpu id="1"',
        '    </tb>\n    <tb id="1" send="-1" recv="-1" chan="0">\n'
        '      <step s="0" type="cpy" srcbuf="i" srcoff="1" dstbuf="s" dstoff="0" cnt="1" {}/>\n'
        '    </tb>\n  </gpu>\n  <gpu id="1"',
    ).replace('s_chunks="0"', 's_chunks="1"', 1)
    with pytest.raises(AlgorithmError, match="a race for chunk 1 of GPU 0's input") as caught:
        prove_program(parse_program(xml.format("")))
    assert "GPU 0, tb 0, step 1 (rrc" in str(caught.value)
    assert "GPU 0, tb 1, step 0 (cpy" in str(caught.value)
    assert "depid" in str(caught.value)
    waits = xml.replace('dstoff="1"/>', 'dstoff="1" hasdep="1"/>', 1)
    prove_program(parse_program(waits.format('depid="0" deps="1"')))
    with pytest.raises(AlgorithmError, match=r'hasdep="0".*never says that it is done'):
        parse_program(xml.format('depid="0" deps="1"'))


def test_a_file_for_both_is_proved_in_place_and_out_of_place() -> None:
    """The ring leaves its result in the input buffer, which is the output only in place."""
    with pytest.raises(
        AlgorithmError, match="GPU 0 ends with a wrong chunk 0 of GPU 0's output: it is empty"
    ):
        prove_program(parse_program(SMALL_RING.replace('inplace="1"', 'inplace="1" outofplace="1"')))
    copied = SMALL_RING.replace('i_chunks="2" o_chunks="0"', 'i_chunks="2" o_chunks="2"')
    for gpu, (mine, other) in enumerate(((1, 0), (0, 1))):
        old = f'<step s="3" type="r" srcbuf="i" srcoff="{other}" dstbuf="i" dstoff="{other}"/>'
        places = ((other, other), (mine, mine))
        copies = "".join(
            f'<step s="{4 + k}" type="cpy" srcbuf="i" srcoff="{src}" dstbuf="o" dstoff="{dst}"/>'
            for k, (src, dst) in enumerate(places)
        )
        assert old in copied, gpu
        copied = copied.replace(old, old + copies, 1)
    both = prove_program(parse_program(copied.replace('inplace="1"', 'inplace="1" outofplace="1"')))
    assert "in place and out of place" in str(both)
