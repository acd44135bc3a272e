import pytest
from scipy.stats import norm

from cosim.results.certainty import faster, interval_ps


def test_an_interval_of_eighty_percent_is_the_normal_distributions() -> None:
    low, high = interval_ps(10**12, (0.03, 0.04))
    assert high / 10**12 == pytest.approx(norm.ppf(0.9, scale=0.05) * 1.0 + 1, rel=0.003)
    assert low * high == pytest.approx(10**24, rel=1e-9)


def test_what_both_have_in_common_says_nothing_about_which_is_faster() -> None:
    error = (0.2, 0.05)
    assert faster(10, error, 10, error, alike=True) == 0.5
    alike, apart = (faster(100, error, 110, error, alike=how) for how in (True, False))
    assert alike == pytest.approx(norm.cdf(0.0953 / (0.05 * 2**0.5)), abs=1e-3)
    assert 0.5 < apart < alike
    assert faster(110, error, 100, error, alike=True) == pytest.approx(1 - alike)
