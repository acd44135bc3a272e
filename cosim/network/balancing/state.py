"""What a network and its balancer share, in columns, and what a balancer is shown."""

from __future__ import annotations

from cosim.kernel import Columns, kernel, record

MAX_STATE: int = kernel.MOST_STATES
LEAST_AGAIN_PS: int = kernel.LEAST_AGAIN_PS
"""A balancer that asks again sooner would keep the clock from going on."""

PAIR = record("endpoint_pair")
CANDIDATE = record("candidate")
CHOICE = record("choice")
SEEN = record("seen_path")


class Balance(Columns):
    """``routes`` and ``state`` run beside a network's connections, ``crowd``, ``dead`` and ``spot`` beside
    its links.
    """
