"""A rank must not leave a collective that it never came to."""

from __future__ import annotations

import numpy as np
import pytest

from cosim.errors import AlgorithmError
from cosim.pattern.assemble import COMPLETION, Block, assemble, entries, exits
from cosim.pattern.prove import prove
from cosim.pattern.template import COPY, Collective, Template


def broadcast(*, waits_for_own_entry: bool) -> Template:
    """Rank 0 sends to rank 1, whose exit waits for the message, and perhaps for its own arrival."""
    message = Block(1, 0, 1, np.array([[2]]), (COMPLETION,), size_bytes=8, chunk_count=1, action=COPY)
    # Entries are flows 0 and 1, the message is 2, the exits 3 and 4.
    second = [2, 3 if waits_for_own_entry else 0]
    end = exits(2, np.array([[3, 0], second]), (COMPLETION, COMPLETION))
    return assemble(
        "broadcast", Collective.BROADCAST, 2, 8, [entries(2), message, end], num_chunks=1, owner=[0]
    )


def test_an_exit_that_does_not_wait_for_its_own_entry_is_refused() -> None:
    prove(broadcast(waits_for_own_entry=True))
    with pytest.raises(
        AlgorithmError, match=r"rank 1 leaves without waiting for its own arrival; rank 1's exit"
    ):
        prove(broadcast(waits_for_own_entry=False))
