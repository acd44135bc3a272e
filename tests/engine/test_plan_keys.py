import numpy as np
import pytest

from cosim.engine.collectives import TURN_BITS, WHAT_BITS, plan_key, plan_slot
from cosim.engine.state import NONE


@pytest.mark.parametrize(("groups", "kinds"), [(4096, 1), (64, 64), (1, 4096)])
def test_plans_of_many_groups_or_kinds_begin_at_places_of_their_own(groups: int, kinds: int) -> None:
    keys = np.full(1 << 13, NONE, np.int64)
    key, slot = plan_key.py_func, plan_slot.py_func  # type: ignore[attr-defined]
    found = {slot(keys, key(comm, what, 0)) for comm in range(groups) for what in range(kinds)}
    assert len(found) > groups * kinds // 2
    assert key((1 << 25) - 1, (1 << WHAT_BITS) - 1, (1 << TURN_BITS) - 1) >= 0
