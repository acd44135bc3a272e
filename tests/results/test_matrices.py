from __future__ import annotations

import numpy as np
import pytest

from cosim.errors import InputError
from cosim.results.links import utilisation_over_time
from cosim.results.matrices import traffic_matrix
from tests.results.synthetic_run import MB, US, Builder, example, traffic


def test_bytes_are_those_of_the_ranks_on_the_endpoints() -> None:
    # Rank r sits on endpoint 3 - r, and endpoint e sends (e + 1) MB to e + 1 in each bin.
    matrix = traffic_matrix(traffic(4), example().job())
    expected = np.zeros((3, 4, 4), np.int64)
    for endpoint in range(4):
        expected[:, 3 - endpoint, 3 - (endpoint + 1) % 4] = (endpoint + 1) * MB
    expected[1, 3 - 1, 3 - 0] += MB
    np.testing.assert_array_equal(matrix.size_bytes, expected)
    np.testing.assert_array_equal(matrix.edges_ps, np.arange(4) * 10 * US)
    assert matrix.total_bytes.sum() == traffic(4).size_bytes.sum()


def test_chosen_ranks_keep_their_order_and_chosen_times_their_bins() -> None:
    job, record = example().job(), traffic(4)
    whole = traffic_matrix(record, job)
    some = traffic_matrix(record, job, ranks=[2, 0, 3], from_ps=12 * US, to_ps=21 * US)
    np.testing.assert_array_equal(some.size_bytes, whole.size_bytes[1:3][:, [2, 0, 3]][:, :, [2, 0, 3]])
    np.testing.assert_array_equal(some.edges_ps, [10 * US, 20 * US, 30 * US])


def test_all_times_in_one() -> None:
    job, record = example().job(), traffic(4)
    one = traffic_matrix(record, job, over_time=False)
    np.testing.assert_array_equal(one.size_bytes[0], traffic_matrix(record, job).total_bytes)
    np.testing.assert_array_equal(one.edges_ps, [0, 30 * US])


def test_time_after_the_end_has_no_bins() -> None:
    matrix = traffic_matrix(traffic(4), example().job(), from_ps=1000 * US)
    assert matrix.size_bytes.shape == (0, 4, 4)


def test_endpoints_of_another_job_are_left_out() -> None:
    matrix = traffic_matrix(traffic(8), Builder(ranks=2).job())
    assert matrix.total_bytes.tolist() == [[0, MB], [3 * MB, 0]]


def test_wrong_ranks_and_huge_matrices_are_refused() -> None:
    job = example().job()
    with pytest.raises(InputError, match="no rank 4; it has 0 to 3"):
        traffic_matrix(traffic(4), job, ranks=[0, 4])
    with pytest.raises(InputError, match="told apart"):
        traffic_matrix(traffic(4), job, ranks=[1, 1])
    with pytest.raises(InputError, match="over_time=False"):
        traffic_matrix(traffic(8000), Builder(ranks=8000).job())


def test_link_utilisation_cuts_the_last_bin_at_the_end() -> None:
    build = example()
    build.rows = [(i, r, o, s, min(e, 195 * US)) for i, r, o, s, e in build.rows]
    records = build.records()
    shares = utilisation_over_time(records.links, records.end_ps)
    assert shares.shape == (20, 8)
    np.testing.assert_allclose(shares[:, 0], 1.0)
    np.testing.assert_allclose(shares[:, 1], 0.5)
    np.testing.assert_allclose(shares[:, 2], [1.0] + [0.0] * 19)
