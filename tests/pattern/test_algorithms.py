"""Messages, bytes, steps and times of the algorithms against their closed forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cosim.errors import AlgorithmError
from cosim.pattern.bruck import Bruck
from cosim.pattern.contract import Algorithm
from cosim.pattern.costs import Costs
from cosim.pattern.direct import Direct
from cosim.pattern.dissemination import Dissemination
from cosim.pattern.double_binary_tree import DoubleBinaryTree
from cosim.pattern.halving_doubling import HalvingDoubling
from cosim.pattern.pat import Pat
from cosim.pattern.prove import prove
from cosim.pattern.recursive_doubling import RecursiveDoubling
from cosim.pattern.ring import RingAlgorithm
from cosim.pattern.send_recv import SendRecv
from cosim.pattern.swing import Swing
from cosim.pattern.template import Collective, Template
from cosim.pattern.tree import BinomialTree
from tests.calls import calls
from tests.pattern.uncontended import exits_ns

I64 = NDArray[np.int64]
D = 1 << 20
E_NS = 10
COSTS = Costs(E_NS * 1000, 1600e9 * 8, floor=True)
SIZES = (2, 3, 4, 5, 8, 16, 64)
POWERS = (2, 4, 8, 16, 64)
AR, AG, RS, A2A = (
    Collective.ALL_REDUCE,
    Collective.ALL_GATHER,
    Collective.REDUCE_SCATTER,
    Collective.ALL_TO_ALL,
)


def took(src: I64, dst: I64, size: I64) -> I64:
    """500 ns and 50 GiB/s, for any two ranks."""
    del src, dst
    return np.asarray((500 + size / 53.6870912).astype(np.int64), np.int64)


def t(size: int) -> int:
    return int(took(np.zeros(1, np.int64), np.zeros(1, np.int64), np.array([size]))[0])


def reduction(size: int) -> int:
    return 3 * int(size / 1600)


def ends(algorithm: Algorithm, collective: Collective, n: int, **options: Any) -> I64:
    template = algorithm.build(collective, n, D, COSTS, **options)
    return exits_ns(template, np.zeros(n, np.int64), took)


def bytes_sent(template: Template) -> I64:
    """int64[N]: bytes that each rank sends to others."""
    out = np.zeros(template.num_ranks, np.int64)
    repeat = np.repeat(template.block_repeat, np.diff(template.block_row))
    between = template.src != template.dst
    np.add.at(out, template.src[between], (template.bytes * repeat)[between])
    return out


@pytest.mark.parametrize("n", SIZES)
def test_ring_takes_the_closed_forms_time(n: int) -> None:
    m = D // n
    assert set(ends(RingAlgorithm(), AR, n)) == {E_NS + 2 * (n - 1) * (t(m) + E_NS) + (n - 1) * reduction(m)}
    assert set(ends(RingAlgorithm(), RS, n)) == {E_NS + (n - 1) * (t(m) + E_NS + reduction(m))}
    assert set(ends(RingAlgorithm(), AG, n)) == {E_NS + (n - 1) * (t(D) + E_NS)}
    assert set(ends(RingAlgorithm(), A2A, n)) == {E_NS + n * (n - 1) // 2 * (t(m) + E_NS)}
    assert set(ends(RingAlgorithm(), AR, n, reverse=True)) == set(ends(RingAlgorithm(), AR, n))


@pytest.mark.parametrize("n", SIZES)
def test_direct_takes_the_closed_forms_time(n: int) -> None:
    m = D // n
    assert set(ends(Direct(), A2A, n)) == {E_NS + t(m) + E_NS}
    assert set(ends(Direct(), AG, n)) == {E_NS + t(D) + E_NS}
    assert set(ends(Direct(), RS, n)) == {E_NS + t(m) + E_NS + reduction(m)}
    assert set(ends(Direct(), AR, n)) == {E_NS + 2 * (t(m) + E_NS) + reduction(m)}


@pytest.mark.parametrize("n", POWERS)
def test_recursive_doubling_takes_the_closed_forms_time(n: int) -> None:
    k = n.bit_length() - 1
    assert set(ends(RecursiveDoubling(), AR, n)) == {E_NS + k * (t(D) + E_NS + reduction(D))}
    assert set(bytes_sent(RecursiveDoubling().build(AR, n, D, COSTS))) == {k * D}


@pytest.mark.parametrize("n", POWERS)
def test_halving_doubling_takes_the_closed_forms_time(n: int) -> None:
    k = n.bit_length() - 1
    half = sum(t(D >> i) + E_NS for i in range(1, k + 1))
    reductions = sum(reduction(D >> (i + 1)) for i in range(1, k))
    assert set(ends(HalvingDoubling(), RS, n)) == {E_NS + half + reductions}
    assert set(ends(HalvingDoubling(), AR, n)) == {E_NS + 2 * half + reductions}
    assert set(ends(HalvingDoubling(), AG, n)) == {E_NS + sum(t(D << i) + E_NS for i in range(k))}


@pytest.mark.parametrize("n", POWERS)
@pytest.mark.parametrize("chunk", [0, 1])
def test_double_binary_tree_leaves_take_the_closed_forms_time(n: int, chunk: int) -> None:
    levels = n.bit_length() - 1
    finish = ends(DoubleBinaryTree(), AR, n, chunk=chunk)
    want = E_NS + (2 * levels - 1) * (t(D) + E_NS + reduction(D)) + t(D) + E_NS
    leaves = np.arange(chunk, n, 2)  # every other rank, from 0 in the first tree and from 1 in the second
    assert set(finish[leaves]) == {want}
    assert finish.max() == want
    assert finish.min() == finish[n - 1 if chunk == 0 else 0]  # the root is done first


@pytest.mark.parametrize("n", SIZES)
def test_bytes_of_each_rank_are_the_least_there_can_be(n: int) -> None:
    size = n * 1000 * 4
    for algorithm in (
        RingAlgorithm(),
        RingAlgorithm(channels=4),
        Direct(),
        *([HalvingDoubling()] if n & (n - 1) == 0 else []),
    ):
        for collective, want in (
            (AR, 2 * size * (n - 1) // n),
            (RS, size * (n - 1) // n),
            (AG, size * (n - 1)),
        ):
            template = algorithm.build(collective, n, size, Costs())
            assert set(bytes_sent(template)) == {want}
    assert set(bytes_sent(Direct().build(A2A, n, size, Costs()))) == {size * (n - 1) // n}
    assert set(bytes_sent(RingAlgorithm().build(A2A, n, size, Costs()))) == {size * (n - 1) // 2}


@pytest.mark.parametrize("n", SIZES)
def test_ring_all_reduce_takes_2n_minus_2_steps(n: int) -> None:
    template = RingAlgorithm().build(AR, n, D, COSTS)
    assert template.num_messages == 2 * n * (n - 1)
    assert template.block_repeat[1:-1].sum() == 2 * n - 2
    assert template.num_flows == 2 * n * (n - 1) + 2 * n
    assert ((template.dst - template.src) % n <= 1).all()


def test_no_byte_is_lost_in_exact_sizing() -> None:
    for size in (1, 7, 1000, 1001, 65537):
        for n in (2, 4, 8):
            for algorithm in (RingAlgorithm(), Direct(), HalvingDoubling()):
                sent = bytes_sent(algorithm.build(RS, n, size, Costs()))
                assert (sent * n >= size * (n - 1)).all()
                assert (sent <= size * (n - 1) / n + n).all()
    assert bytes_sent(RingAlgorithm().build(RS, 4, 1001, Costs(floor=True))).tolist() == [750] * 4


def test_floor_sizing_halves_and_doubles_as_astra_sim_does() -> None:
    template = HalvingDoubling().build(AR, 4, 1007, Costs(floor=True))
    first = template.block_row[1:-2]
    assert template.bytes[first].tolist() == [503, 251, 250, 500]


@pytest.mark.parametrize("root", [0, 3])
@pytest.mark.parametrize("n", [2, 5, 8, 9])
def test_broadcasts_reach_everyone_from_any_root(n: int, root: int) -> None:
    root %= n
    for algorithm in (BinomialTree(), RingAlgorithm(), RingAlgorithm(channels=2, bidirectional=True)):
        template = algorithm.build(Collective.BROADCAST, n, D, COSTS, root=root)
        prove(template)
        into = np.unique(template.dst[template.src != template.dst])
        assert sorted([*into, root]) == list(range(n))
    steps = (n - 1).bit_length()
    finish = ends(BinomialTree(), Collective.BROADCAST, n, root=root)
    assert finish.max() == E_NS + steps * (t(D) + E_NS)


def test_barrier_ends_after_the_last_arrival() -> None:
    for n in (2, 3, 7, 8, 33):
        template = Dissemination().build(Collective.BARRIER, n, 0, COSTS)
        prove(template)
        arrival = np.zeros(n, np.int64)
        arrival[n // 2] = 10**6
        assert exits_ns(template, arrival, took).min() > 10**6
        assert template.num_messages == n * (n - 1).bit_length()


def test_send_recv_is_one_message_without_delays() -> None:
    template = SendRecv().build(Collective.SEND_RECV, 2, D, COSTS)
    prove(template)
    assert exits_ns(template, np.array([100, 0]), took).tolist() == [100 + t(D), 100 + t(D)]
    late = exits_ns(template, np.array([0, 10**6]), took)
    assert late.tolist() == [t(D), 10**6]


def test_a_late_rank_holds_up_its_neighbours_only_as_a_ring_does() -> None:
    n, late = 8, 10**7
    arrival = np.zeros(n, np.int64)
    arrival[3] = late
    finish = exits_ns(RingAlgorithm().build(AR, n, D, COSTS), arrival, took)
    m = D // n
    alone = E_NS + 2 * (n - 1) * (t(m) + E_NS) + (n - 1) * reduction(m)
    assert finish.max() == late + alone
    assert finish.min() > late


def test_window_keeps_messages_of_a_rank_under_way_few() -> None:
    m = D // 8
    finish = [int(ends(Direct(window=w), A2A, 8).max()) for w in (1, 2, 7, 100)]
    assert finish[0] == E_NS + 7 * (t(m) + E_NS)
    assert finish[0] > finish[1] > finish[2] == finish[3] == E_NS + t(m) + E_NS


def test_channels_carry_equal_parts_and_keep_apart() -> None:
    template = RingAlgorithm(channels=4, bidirectional=True).build(AR, 8, D, COSTS)
    sent = [int(template.bytes[template.channel == c].sum()) for c in range(4)]
    assert len(set(sent)) == 1
    for channel in range(4):
        rows = (template.channel == channel) & (template.src != template.dst)
        step = 1 if channel % 2 == 0 else 7
        assert set((template.dst - template.src)[rows] % 8) == {step}


def test_what_an_algorithm_cannot_do_is_refused_with_what_could() -> None:
    with pytest.raises(AlgorithmError, match=r"power of two.*6[\s\S]*direct.*ring"):
        HalvingDoubling().build(AR, 6, D, COSTS)
    with pytest.raises(AlgorithmError, match=r"can't carry all_to_all[\s\S]*direct.*ring"):
        HalvingDoubling().build(A2A, 8, D, COSTS)
    with pytest.raises(AlgorithmError, match=r"between 2 ranks"):
        SendRecv().build(Collective.SEND_RECV, 3, D, COSTS)


def test_direct_rows_stand_rank_by_rank_nearest_first() -> None:
    template = Direct().build(A2A, 5, D, COSTS)
    assert template.dst[5:13].tolist() == [1, 2, 3, 4, 2, 3, 4, 0]
    assert template.src[5:13].tolist() == [0, 0, 0, 0, 1, 1, 1, 1]


@pytest.mark.parametrize(
    ("algorithm", "collective"),
    [
        (RingAlgorithm(), AR),
        (Direct(), A2A),
        (HalvingDoubling(), AR),
        (DoubleBinaryTree(), AR),
        (BinomialTree(), Collective.BROADCAST),
        (Dissemination(), Collective.BARRIER),
    ],
    ids=lambda one: getattr(one, "name", None),
)
def test_large_templates_are_built_by_columns(algorithm: Algorithm, collective: Collective) -> None:
    """32 times as many ranks take five steps more at most, and none a call of its own."""
    few, many = (calls(lambda: algorithm.build(collective, n, D, COSTS)) for n in (16, 512))  # noqa: B023
    assert many < 3 * few


def test_large_templates_take_rows_for_ranks_not_for_messages_and_are_proved() -> None:
    ring = RingAlgorithm().build(AR, 4096, D, COSTS)
    direct = Direct().build(A2A, 512, D, COSTS)
    assert ring.num_messages == 33_546_240
    assert len(ring.src) < 30_000
    assert direct.num_messages == 512 * 511
    prove(RingAlgorithm().build(AR, 1024, D, COSTS))


@pytest.mark.parametrize("n", [2, 3, 5, 8, 16, 23, 64])
@pytest.mark.parametrize("reverse", [False, True])
def test_brucks_all_gather_takes_log_steps_for_any_number_of_ranks(n: int, reverse: bool) -> None:
    template = Bruck().build(AG, n, D, COSTS, reverse=reverse)
    prove(template)
    steps = (n - 1).bit_length()
    assert template.num_messages == n * steps
    assert set(bytes_sent(template)) == {(n - 1) * D}
    last = n - (1 << (steps - 1))
    took_ns = E_NS + sum(t(D << k) + E_NS for k in range(steps - 1)) + t(last * D) + E_NS
    assert set(ends(Bruck(), AG, n, reverse=reverse)) == {took_ns}


@pytest.mark.parametrize("n", POWERS)
def test_pat_sends_least_to_the_farthest(n: int) -> None:
    gather, scatter = (Pat().build(each, n, D, COSTS) for each in (AG, RS))
    for template, unit in ((gather, D), (scatter, D // n)):
        prove(template)
        assert set(bytes_sent(template)) == {(n - 1) * unit}
        far = np.minimum((template.dst - template.src) % n, (template.src - template.dst) % n)
        assert set((far * template.bytes)[template.src != template.dst]) == {n // 2 * unit}
    assert ends(Pat(), AG, n).max() == E_NS + sum(t(D << k) + E_NS for k in range(n.bit_length() - 1))


@pytest.mark.parametrize("n", POWERS)
def test_swing_halves_and_doubles_over_short_ways(n: int) -> None:
    for kind in (AG, RS, AR):
        swing, other = (each.build(kind, n, D, Costs(E_NS * 1000)) for each in (Swing(), HalvingDoubling()))
        prove(swing)
        # The same messages in the same order as halving and doubling, to other partners.
        assert (
            exits_ns(swing, np.zeros(n, np.int64), took).max()
            == exits_ns(other, np.zeros(n, np.int64), took).max()
        )
    template = Swing().build(RS, n, D, COSTS)
    rows = template.src != template.dst
    far = ((template.dst - template.src) % n)[rows].reshape(-1, n)
    near = np.minimum(far, n - far).max(axis=1).tolist()
    # The paper's distances on a ring: 1, 1, 3, 5, 11, 21 (Jacobsthal's numbers), where there is room.
    assert near == [min(each, n - each) for each in (1, 1, 3, 5, 11, 21)[: len(near)]]
