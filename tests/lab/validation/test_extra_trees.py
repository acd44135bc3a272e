import numpy as np

from tests.lab.validation import extra_trees


def test_trees_find_what_jumps_and_keep_what_they_saw() -> None:
    """Of ten columns one matters; the value jumps at each whole number of it, which no line does."""
    rng = np.random.default_rng(1)
    known, asked = rng.uniform(0, 4, (400, 10)), rng.uniform(0, 4, (200, 10))
    values, right = np.floor(known[:, 0]), np.floor(asked[:, 0])
    assert np.allclose(extra_trees.predicted(known, values, known), values)
    said = extra_trees.predicted(known, values, asked)
    slope, height = np.polyfit(known[:, 0], values, 1)
    line = slope * asked[:, 0] + height
    assert np.abs(said - right).mean() < 0.6 * np.abs(line - right).mean()
    assert np.array_equal(said, extra_trees.predicted(known, values, asked))
