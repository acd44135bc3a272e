"""Which endpoints jobs get."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosim.cluster.arrange import Request, arrange
from cosim.cluster.contract import Placement
from cosim.cluster.placement import Explicit, Packed, Random, Spread
from cosim.context import Context
from cosim.errors import WorkloadError


def placed(placement: Placement, num_ranks: int, num_endpoints: int = 8, seed: int = 0) -> list[int]:
    request = Request("job", num_ranks, placement)
    (endpoints,) = arrange([request], num_endpoints, context=Context(seed=seed))
    assert endpoints.dtype == np.int32
    return [int(endpoint) for endpoint in endpoints]


def test_packed_takes_the_lowest() -> None:
    assert placed(Packed(), 3) == [0, 1, 2]


def test_spread_leaves_even_gaps() -> None:
    assert placed(Spread(), 4) == [0, 2, 4, 6]
    assert placed(Spread(), 3) == [0, 2, 5]
    assert placed(Spread(), 8) == list(range(8))


def test_explicit_puts_rank_r_on_the_rth() -> None:
    assert placed(Explicit(endpoints=(5, 0, 3)), 3) == [5, 0, 3]


def test_random_is_the_same_on_every_machine() -> None:
    """The first outputs of SplitMix64 from seed 0 are known: e220a8397b1dcdaf, 6e789e6aa1b965f4, ..."""
    known = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F, 0xF88BB8A8724C81EC]
    assert placed(Random(), 4, 4) == sorted(range(4), key=lambda n: known[n])


@given(num_ranks=st.integers(1, 8), seed=st.integers(0, 2**64))
def test_random_uses_each_endpoint_once_and_the_seed_decides(num_ranks: int, seed: int) -> None:
    chosen = placed(Random(), num_ranks, seed=seed)
    assert len(set(chosen)) == num_ranks
    assert chosen == placed(Random(seed=seed), num_ranks, seed=1)


def test_random_seeds_differ() -> None:
    assert len({tuple(placed(Random(seed=seed), 8)) for seed in range(20)}) == 20


def test_later_jobs_get_what_is_left() -> None:
    requests = [
        Request("a", 2, Explicit(endpoints=(1, 4))),
        Request("b", 2, Packed()),
        Request("c", 2, Spread()),
        Request("d", 2, Random()),
    ]
    a, b, c, d = arrange(requests, 8)
    assert [x.tolist() for x in (a, b, c)] == [[1, 4], [0, 2], [3, 6]]
    assert sorted(d) == [5, 7]


def test_sharing_has_to_be_asked_for() -> None:
    requests = [Request("a", 2, Packed()), Request("b", 2, Explicit(endpoints=(1, 2)))]
    with pytest.raises(
        WorkloadError, match=r"endpoint 1 is wanted by the job 'b'.*job 'a'\n.*share_endpoints"
    ):
        arrange(requests, 4)
    shared = arrange(requests, 4, share_endpoints=True)
    assert [x.tolist() for x in shared] == [[0, 1], [1, 2]]


@pytest.mark.parametrize(
    ("placement", "num_ranks", "said"),
    [
        (Packed(), 9, "9 ranks, the topology 8 endpoints"),
        (Spread(), 9, "9 ranks"),
        (Random(), 9, "9 ranks"),
        (Explicit(endpoints=(0, 1)), 3, "2 endpoints are listed, the job has 3 ranks"),
        (Explicit(endpoints=(0, 8)), 2, "rank 1 is put on endpoint 8; the topology has 0 to 7"),
        (Explicit(endpoints=(-1, 0)), 2, "rank 0 is put on endpoint -1"),
        (Explicit(endpoints=(3, 3)), 2, r"endpoint 3 is given to ranks \[0, 1\]"),
    ],
)
def test_what_does_not_fit_is_refused(placement: Placement, num_ranks: int, said: str) -> None:
    with pytest.raises(WorkloadError, match=said):
        placed(placement, num_ranks)
