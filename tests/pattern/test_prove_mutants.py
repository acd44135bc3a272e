"""Mutants of every algorithm: whatever changes the outcome is refused, with rank, chunk and step named."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cosim.errors import AlgorithmError
from cosim.kernel.library import KernelLibrary
from cosim.pattern.contract import Algorithm
from cosim.pattern.costs import Costs
from cosim.pattern.direct import Direct
from cosim.pattern.dissemination import Dissemination
from cosim.pattern.double_binary_tree import DoubleBinaryTree
from cosim.pattern.halving_doubling import HalvingDoubling
from cosim.pattern.prove import prove
from cosim.pattern.recursive_doubling import RecursiveDoubling
from cosim.pattern.ring import RingAlgorithm
from cosim.pattern.template import COPY, REDUCE, Collective, Template
from cosim.pattern.tree import BinomialTree

ALGORITHMS: list[tuple[Algorithm, Collective]] = [
    (algorithm, collective)
    for algorithm in (
        RingAlgorithm(),
        RingAlgorithm(channels=2, bidirectional=True),
        Direct(),
        Direct(window=2),
        HalvingDoubling(),
        RecursiveDoubling(),
        DoubleBinaryTree(),
        BinomialTree(),
    )
    for collective in sorted(algorithm.carries, key=lambda each: each.value)
]
SIZES = (2, 4, 8, 16)


def built(algorithm: Algorithm, collective: Collective, num_ranks: int) -> Template:
    return algorithm.build(collective, num_ranks, 1 << 20, Costs(10_000, 1.28e13), root=num_ranks // 2)


def changed(template: Template, **columns: Any) -> Template:
    """The template with other columns; ``replace`` would pass on the field that is worked out."""
    old = {f.name: getattr(template, f.name) for f in fields(template) if f.init}
    return Template(**{**old, **columns})


def data_rows(template: Template) -> np.ndarray[Any, Any]:
    return np.flatnonzero(template.action != 0)


Cells = dict[tuple[int, int], int]
GARBAGE = -1


def contribution(rank: int) -> int:
    """Sums of these tell how often each rank is in them."""
    return int(1000**rank)


def at_first(template: Template) -> Cells:
    """What each (rank, chunk) holds when all arrive."""
    t, n = template, template.num_ranks
    cells = {}
    for rank in range(n):
        for chunk in range(t.num_chunks, t.num_places):
            cells[rank, chunk] = GARBAGE
        for chunk in range(t.num_chunks):
            if t.collective in (Collective.ALL_REDUCE, Collective.REDUCE_SCATTER):
                mine = True
            elif t.collective is Collective.ALL_TO_ALL:
                mine = chunk // (t.num_chunks // n) == rank
            else:
                mine = int(t.owner[chunk]) == rank
            cells[rank, chunk] = contribution(rank) if mine else GARBAGE
    return cells


def as_promised(template: Template, cells: Cells) -> bool:
    """Whether ranks end with what the collective says."""
    t, n = template, template.num_ranks
    everyone = sum(map(contribution, range(n)))
    for chunk in range(t.num_chunks):
        owner = int(t.owner[chunk])
        if t.collective is Collective.ALL_REDUCE:
            good = all(cells[rank, chunk] == everyone for rank in range(n))
        elif t.collective is Collective.REDUCE_SCATTER:
            good = cells[owner, chunk] == everyone
        elif t.collective is Collective.ALL_TO_ALL:
            good = cells[owner, chunk] == contribution(chunk // (t.num_chunks // n))
        else:
            good = all(cells[rank, chunk] == contribution(owner) for rank in range(n))
        if not good:
            return False
    return True


def places(template: Template) -> list[tuple[int, int]]:
    """(row, repetition) of every flow."""
    return [
        (row, repetition)
        for block in range(len(template.block_repeat))
        for repetition in range(int(template.block_repeat[block]))
        for row in range(int(template.block_row[block]), int(template.block_row[block + 1]))
    ]


def carried(template: Template, place: tuple[int, int]) -> list[int]:
    row, repetition = place
    if template.action[row] == 0:
        return []
    first = int(template.chunk[row]) + repetition * int(template.chunk_step[row])
    return [c % template.num_places for c in range(first, first + int(template.chunk_count[row]))]


def write(template: Template, cells: Cells, place: tuple[int, int], values: list[int]) -> None:
    row = place[0]
    for chunk, value in zip(carried(template, place), values, strict=True):
        at = int(template.dst[row]), (chunk + int(template.shift[row])) % template.num_places
        cells[at] = cells[at] + value if template.action[row] == REDUCE else value


def read(template: Template, cells: Cells, place: tuple[int, int]) -> list[int]:
    return [cells[int(template.src[place[0]]), chunk] for chunk in carried(template, place)]


def promised(template: Template) -> bool:
    """Whether one message after another, in number order, ends as the collective promises."""
    cells = at_first(template)
    for place in places(template):
        write(template, cells, place, read(template, cells, place))
    return as_promised(template, cells)


def right_in_random_orders(template: Template, seed: int) -> bool:
    """Whether random interleavings of starts and completions that dependencies allow all end right."""
    t = template
    where = places(t)
    waits = [
        [
            (flow - int(t.dep_distance[d]), int(t.dep_kind[d]))
            for d in range(int(t.dep_ptr[row]), int(t.dep_ptr[row + 1]))
        ]
        for flow, (row, _) in enumerate(where)
    ]
    rng = np.random.default_rng(seed)
    for _ in range(4):
        cells = at_first(t)
        started, ended = set[int](), set[int]()
        flying: dict[int, list[int]] = {}
        while len(ended) < len(where):
            able = [
                flow
                for flow in range(len(where))
                if flow not in started
                and all(before in (started if kind else ended) for before, kind in waits[flow])
            ]
            choice = int(rng.integers(len(able) + len(flying)))
            if choice < len(able):
                started.add(able[choice])
                flying[able[choice]] = read(t, cells, where[able[choice]])
            else:
                flow = list(flying)[choice - len(able)]
                write(t, cells, where[flow], flying.pop(flow))
                ended.add(flow)
        if not as_promised(t, cells):
            return False
    return True


def refused(template: Template) -> str:
    with pytest.raises(AlgorithmError) as caught:
        prove(template)
    return str(caught.value)


@pytest.mark.parametrize(("algorithm", "collective"), ALGORITHMS, ids=lambda each: str(each))
def test_every_algorithm_is_proved(algorithm: Algorithm, collective: Collective) -> None:
    for num_ranks in (*SIZES, 3, 5, 6, 7, 65, 67, 128):
        if algorithm.power_of_two and num_ranks & (num_ranks - 1):
            continue
        if collective is Collective.ALL_TO_ALL and num_ranks > 67:
            continue
        template = built(algorithm, collective, num_ranks)
        prove(template)
        if num_ranks <= 16:
            assert promised(template)


def drop_row(template: Template, row: int) -> Template:
    """A message that is never sent, its place in the numbers kept."""
    action = template.action.copy()
    action[row] = 0
    return changed(template, action=action)


def change_destination(template: Template, row: int) -> Template:
    dst = template.dst.copy()
    dst[row] = (dst[row] + 1) % template.num_ranks
    return changed(template, dst=dst)


def swap_action(template: Template, row: int) -> Template:
    action = template.action.copy()
    action[row] = COPY if action[row] == REDUCE else REDUCE
    return changed(template, action=action)


def shift_chunk(template: Template, row: int) -> Template:
    chunk = template.chunk.copy()
    chunk[row] = (chunk[row] + 1) % template.num_places
    return changed(template, chunk=chunk)


MUTATIONS: list[Callable[[Template, int], Template]] = [
    drop_row,
    change_destination,
    swap_action,
    shift_chunk,
]


@given(
    which=st.sampled_from(ALGORITHMS),
    num_ranks=st.sampled_from(SIZES),
    mutate=st.sampled_from(MUTATIONS),
    pick=st.integers(0, 10**6),
)
@settings(max_examples=250, deadline=None, derandomize=True)
def test_a_mutant_that_ends_wrong_is_refused_by_rank_chunk_and_step(
    which: tuple[Algorithm, Collective],
    num_ranks: int,
    mutate: Callable[[Template, int], Template],
    pick: int,
) -> None:
    template = built(*which, num_ranks)
    rows = data_rows(template)
    mutant = mutate(template, int(rows[pick % len(rows)]))
    if not promised(mutant):
        said = refused(mutant)
        assert re.search(r"rank \d+", said)
        # A message into the wrong rank is found by the dependencies that no longer fit.
        assert re.search(r"chunk|scratch", said)
        assert re.search(r"step \d+|never written|exit", said)


@given(which=st.sampled_from(ALGORITHMS), num_ranks=st.sampled_from((2, 4)), pick=st.integers(0, 10**6))
@settings(max_examples=150, deadline=None, derandomize=True)
def test_a_dropped_dependency_is_refused_unless_all_orders_are_still_right(
    which: tuple[Algorithm, Collective], num_ranks: int, pick: int
) -> None:
    template = built(*which, num_ranks)
    edge = pick % len(template.dep_distance)
    keep = np.arange(len(template.dep_distance)) != edge
    row = int(np.searchsorted(template.dep_ptr, edge, side="right")) - 1
    ptr = template.dep_ptr - (np.arange(len(template.dep_ptr)) > row)
    mutant = changed(
        template,
        dep_ptr=ptr,
        dep_distance=template.dep_distance[keep],
        dep_kind=template.dep_kind[keep],
    )
    try:
        prove(mutant)
    except AlgorithmError as error:
        assert re.search(r"rank|message", str(error))  # noqa: PT017
    else:
        assert right_in_random_orders(mutant, pick)


@pytest.mark.parametrize(("algorithm", "collective"), ALGORITHMS, ids=lambda each: str(each))
def test_a_cycle_is_a_deadlock_that_names_the_messages(algorithm: Algorithm, collective: Collective) -> None:
    template = built(algorithm, collective, 4)
    row = int(data_rows(template)[0])
    distance = template.dep_distance.copy()
    distance[template.dep_ptr[row]] = 0
    said = refused(changed(template, dep_distance=distance))
    assert "deadlocks" in said
    assert re.search(r"message \d+ -> \d+ with chunks? \d+.* in step 1 ", said)


def test_a_message_that_waits_for_nothing_is_never_released() -> None:
    template = built(RingAlgorithm(), Collective.ALL_REDUCE, 4)
    ptr = template.dep_ptr.copy()
    ptr[5:] -= 1
    mutant = changed(
        template, dep_ptr=ptr, dep_distance=template.dep_distance[1:], dep_kind=template.dep_kind[1:]
    )
    assert "the message 0 -> 1 with chunk 3 in step 1 (block 1, repetition 0) waits for nothing" in refused(
        mutant
    )


def test_an_exit_that_does_not_wait_for_the_last_message_is_refused() -> None:
    template = built(RingAlgorithm(), Collective.ALL_REDUCE, 4)
    kind = template.dep_kind.copy()
    kind[template.dep_ptr[-2]] = 1  # rank 3's exit: the last message's start is not its arrival
    said = refused(changed(template, dep_kind=kind))
    assert "rank 3's exit" in said
    assert "can't see" in said


def test_a_send_that_leaves_before_its_data_arrived_is_refused() -> None:
    for num_ranks in (4, 200):  # with and without the happens-before relation
        template = built(RingAlgorithm(), Collective.ALL_GATHER, num_ranks)
        row = int(template.block_row[2])
        distance = template.dep_distance.copy()
        distance[template.dep_ptr[row]] = num_ranks  # waits for its own first message instead
        said = refused(changed(template, dep_distance=distance))
        assert "arrive as late as dependencies allow" in said
        assert "wrong chunk" in said


def test_values_missing_doubled_and_foreign_are_named() -> None:
    template = built(Direct(), Collective.REDUCE_SCATTER, 4)
    row = int(template.block_row[1])  # 0 -> 1
    assert "rank 1 ends with a wrong chunk 1: it lacks what comes from rank 0" in refused(
        drop_row(template, row)
    )
    chunk = template.chunk.copy()
    chunk[row] = 2
    assert "lacks what comes from rank 0" in refused(changed(template, chunk=chunk))
    big = built(Direct(), Collective.REDUCE_SCATTER, 100)
    row = int(big.block_row[1])
    said = refused(drop_row(big, row))
    assert "rank 1 ends with a wrong chunk 1: it lacks what comes from rank 0;" in said


def test_a_barrier_that_does_not_wait_for_everyone_is_refused() -> None:
    template = Dissemination().build(Collective.BARRIER, 8, 0, Costs())
    prove(template)
    rows = slice(int(template.block_row[1]), int(template.block_row[2]))
    dst = template.dst.copy()
    src = template.src.copy()
    assert (dst[rows] == (src[rows] + 1) % 8).all()
    distance = template.dep_distance.copy()
    row = int(template.block_row[2])
    distance[template.dep_ptr[row]] = 8  # step 2 of rank 0 no longer waits for rank 7's message
    said = refused(changed(template, dep_distance=distance))
    assert "without waiting for rank" in said


def test_large_all_to_all_moves_every_piece() -> None:
    template = built(Direct(), Collective.ALL_TO_ALL, 300)
    prove(template)
    row = int(data_rows(template)[12345])
    said = refused(drop_row(template, row))
    assert f"rank {template.dst[row]} ends with a wrong chunk" in said


def test_partners_that_add_to_what_they_send_race_and_scratch_that_is_shared_does() -> None:
    """Recursive doubling without scratch, and with one place for two steps: the next message may come before
    what stands there was added.
    """
    template = built(RecursiveDoubling(), Collective.ALL_REDUCE, 4)
    nowhere = np.zeros_like(template.shift)
    local = (template.src == template.dst) & (template.action == REDUCE)
    action = np.where(local, 0, np.where(template.action == COPY, REDUCE, 0)).astype(np.int8)
    said = refused(changed(template, shift=nowhere, chunk=nowhere, action=action, num_scratch=0))
    assert "rank 0" in said
    sends = (template.src != template.dst) & (template.action == COPY)
    shared = changed(
        template,
        shift=np.where(sends, 1, np.where(local, template.num_places - 1, 0)).astype(np.int32),
        chunk=np.where(local, 1, 0).astype(np.int32),
    )
    assert promised(shared)
    assert not all(right_in_random_orders(shared, seed) for seed in range(20))
    assert "a race for scratch 0" in refused(shared)
    far = changed(template, shift=np.where(sends, template.num_places, template.shift).astype(np.int32))
    assert "a shift out of range: 3" in refused(far)


def test_what_scratch_holds_at_first_is_no_zero() -> None:
    """A rank that adds before anything came adds garbage."""
    template = built(RecursiveDoubling(), Collective.ALL_REDUCE, 2)
    sends = (template.src != template.dst) & (template.action == COPY)
    assert "rank 0 ends with a wrong chunk 0" in refused(
        changed(template, action=np.where(sends, 0, template.action).astype(np.int8))
    )


@given(
    which=st.sampled_from(ALGORITHMS),
    num_ranks=st.sampled_from((4, 8)),
    mutate=st.sampled_from(MUTATIONS),
    pick=st.integers(0, 10**6),
)
@example(which=(RingAlgorithm(), Collective.ALL_GATHER), num_ranks=65, mutate=swap_action, pick=3)
@settings(max_examples=40, deadline=None, derandomize=True)
def test_without_a_kernel_the_same_is_said_of_a_mutant(
    which: tuple[Algorithm, Collective],
    num_ranks: int,
    mutate: Callable[[Template, int], Template],
    pick: int,
) -> None:
    if which[0].power_of_two and num_ranks & (num_ranks - 1):
        num_ranks = 16
    template = built(*which, num_ranks)
    rows = data_rows(template)
    for one in (template, mutate(template, int(rows[pick % len(rows)])) if len(rows) else template):
        with pytest.MonkeyPatch.context() as patch:
            by_kernel = said(one)
            patch.setattr(KernelLibrary, "why_not", lambda _: "there is none")
            assert said(one) == by_kernel


def said(template: Template) -> str:
    """Why a template is refused; nothing: it is proved."""
    try:
        prove(template)
    except AlgorithmError as error:
        return str(error)
    return ""
