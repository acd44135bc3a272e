"""Each pattern is named, and its order found, whatever hosts are called and under a fifth of noise."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from cosim.results.traffic.patterns import MIXED, groups_of, name_pattern, patterns

I64 = NDArray[np.int64]
NAMES = [name for name, _ in patterns(8)]


def shuffled(name: str, count: int, rng: np.random.Generator) -> tuple[I64, I64, I64]:
    src, dst, size = dict(patterns(count))[name]
    hosts = rng.permutation(1000)[:count]
    return hosts[src], hosts[dst], np.rint(size * 1000 / size.min()).astype(np.int64)


@pytest.mark.parametrize("count", [8, 16, 32, 64])
@pytest.mark.parametrize("name", NAMES)
def test_a_pattern_of_shuffled_hosts_is_named_and_its_order_found(name: str, count: int) -> None:
    src, dst, size = shuffled(name, count, np.random.default_rng(count))
    found = name_pattern(src.astype(np.int32), dst.astype(np.int32), size)
    assert found.name == name
    assert found.explained == pytest.approx(1)
    # Hosts in the order found have the pattern's own bytes.
    a, b, expected = dict(patterns(count))[name]
    seen = dict(zip(zip(src.tolist(), dst.tolist(), strict=True), size.tolist(), strict=True))
    ordered = [seen[pair] for pair in zip(found.order[a].tolist(), found.order[b].tolist(), strict=True)]
    assert np.allclose(ordered, expected * 1000 / expected.min(), rtol=1e-3)
    assert found.size_bytes == size.sum()


@pytest.mark.parametrize("kind", ["each pair off by up to a fifth", "a fifth more between any hosts"])
@pytest.mark.parametrize("count", [8, 32, 64])
@pytest.mark.parametrize("name", NAMES)
def test_noise_hides_no_pattern(name: str, count: int, kind: str) -> None:
    rng = np.random.default_rng(count)
    src, dst, size = shuffled(name, count, rng)
    hosts = np.unique(src if len(np.unique(src)) == count else np.append(src, dst))
    if kind.startswith("each"):
        size = np.rint(size * rng.uniform(0.8, 1.2, len(size))).astype(np.int64)
    else:
        a, b = np.nonzero(~np.eye(count, dtype=bool))
        more = rng.exponential(1, len(a))
        more *= 0.2 * size.sum() / more.sum()
        src, dst = np.append(src, hosts[a]), np.append(dst, hosts[b])
        size = np.append(size, np.rint(more).astype(np.int64))
    assert name_pattern(src.astype(np.int32), dst.astype(np.int32), size).name == name


def test_random_traffic_is_mixed() -> None:
    rng = np.random.default_rng(1)
    src = rng.integers(0, 16, 60).astype(np.int32)
    dst = (src + rng.integers(1, 16, 60)).astype(np.int32) % 16
    assert name_pattern(src, dst, rng.integers(1, 1 << 20, 60)).name == MIXED


def test_groups_are_hosts_that_traffic_connects() -> None:
    src, dst = np.array([5, 1, 9, 4], np.int32), np.array([1, 7, 2, 4], np.int32)
    assert [group.tolist() for group in groups_of(src, dst)] == [[1, 5, 7], [2, 9]]
