"""Load balancers: what a plug-in is.

A balancer is a class with ``choose(c)``. It is called with the connections that choose now, as columns, one
row each, and says which of its equal-cost paths each takes: ``c.path``, a path's number, or ``c.parts``
[rows, paths], what part of its bytes goes which way, as the class's ``gives`` has it. A connection is (job,
source, destination, channel); it chooses when it begins a message, and again ``c.again`` ps later where that
is set. Its own fields are its parameters. ``state`` names columns of its own, kept for each connection, with
their first values::

    class TwoChoices(Balancer):
        "The less used of two paths drawn at random"

        looks: ClassVar[bool] = True
        one_by_one: ClassVar[bool] = True

        def choose(self, c):
            one = np.floor(c.chance * c.paths).astype(int)
            other = np.floor(c.chance * 65536 % 1 * c.paths).astype(int)
            rows = np.arange(len(c))
            better = c.path_flows[rows, other] < c.path_flows[rows, one]
            c.path = np.where(better, other, one)

Columns, float64 each:

====================  =================================================================================
``first``             1 where the connection chooses for the first time
``begins_message``    1 where it begins a message, 0 where it sends one and is asked again
``idle``              since it sent last, ps; of one that sends, the pause for which it is asked, else 0
``size, left``        of the message, bytes; what is left of it
``rate``              bits/s it sends at; 0 where it begins
``line``              rate of its first link, bits/s
``rtt, base_rtt``     of the path it has, ps, with queues and without
``marked``            fraction of its bytes that were marked in its last round trip
``chance``            a random number from 0 to 1, from the run's seed, the connection and the time
``hash``              the same at any time
``job, priority``     numbers
``paths``             how many there are to choose from
``path``              the one it has (-1: none, or several), to be replaced
``again``             0; ps until it is to be asked again (0: at its next message)
====================  =================================================================================

and of each path, [rows, paths]:

====================  =================================================================================
``parts``             what part of its bytes goes this way, to be replaced where ``gives`` is "parts"
``path_alive``        1; 0 where a link of it is down, or beyond ``paths``: not to be chosen
``path_minimal``      1; 0 for a detour, which there are where the class says ``detours``
``path_hops``         links
``path_rate``         of its slowest link, bits/s
``path_latency``      ps, one way
``path_load``         (*) bits/s that others bring to its worst link, over that link's rate
``path_flows``        (*) connections on its most used link; one that has parts counts as its part there
``path_queue``        (*) how long its queues take, ps; 0 in networks without queues
``path_marked``       (*) probability that they mark a packet
====================  =================================================================================

Those with (*) are there where the class says ``looks``, and leave out links that all paths of the pair share.
Loads are those before this instant; connections are counted as they are now.

Everything that chooses at one instant is one batch, whose rows do not see each other's choices; they must not
look at each other either. Training starts many messages at one instant, which would all run to the path that
was free. Where the class says ``one_by_one``, each is a batch of its own, in a random order, and is counted
among ``path_flows`` by those that follow.

Compiled balancers. A class with a ``kernel``, a function of C, is asked without Python in between. It is
called with ``(n, rows, paths, state, parameters)``: ``rows[i]`` has the columns of the first table as
fields; its paths are ``paths[rows[i].begin]`` and those that follow, with the columns of the second
(``part``, ``alive``, ``load`` ...); its state is ``state[8 * rows[i].conn]`` and what follows. A row whose
``first`` is 1 sets its state itself. The records are ``struct choice`` and ``struct seen_path`` of
``kernel.h``. What ``kernel`` can be is said in :mod:`cosim.network.plugged`.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from cosim.spec import Spec


class Balancer(Spec):
    """Base of every load balancer."""

    gives: ClassVar[Literal["path", "parts"]] = "path"
    state: ClassVar[dict[str, float]] = {}
    looks: ClassVar[bool] = False
    """Whether it looks at loads, queues and marks of paths, which have to be computed."""
    one_by_one: ClassVar[bool] = False
    """Whether each that chooses sees the choices of those before it at the same instant."""
    detours: ClassVar[bool] = False
    """Whether there are longer paths to choose from, by way of other endpoints' switches."""
    needs_queues: ClassVar[bool] = False
    """It goes by queues or marks, so that networks without them refuse it."""
    chooses: ClassVar[bool] = True
    """False: every connection keeps the path that the topology's routing gives it."""
    reorders: ClassVar[bool] = False
    """Packets of one message overtake each other, for which a transport may send them again."""
    uses_chance: ClassVar[bool] = False
    """Whether ``chance`` or ``hash`` matter, and so the run's seed."""
    kernel: ClassVar[Any] = None
    """A function of C that chooses; see the module's text."""

    @classmethod
    def numba_signature(cls) -> Any:
        """What ``numba.cfunc`` has to be given for a kernel."""
        from cosim.network.plugged import numba_signature

        return numba_signature("choice", "seen_path")

    def parameters(self) -> list[float]:
        """What the kernel is given."""
        return []

    def least_pause(self) -> int | None:
        """A connection that pauses for longer than this in the midst of a message, ps, is asked again, in
        networks whose messages are packets: where its window is used up or was cut, or from one packet to the
        next, at most once a round trip. None: it is not.
        """
        return None

    def uses_seed(self) -> bool:
        """Whether the run's seed matters: also where a random order does."""
        return self.uses_chance or self.one_by_one

    @classmethod
    def lacks(cls) -> list[str]:
        """``choose``, where there is no kernel."""
        own = cls.kernel or cls.choose is not Balancer.choose or not cls.chooses
        return [] if own else ["choose(self, c)"]

    def choose(self, c: Any) -> None:
        """Which way each goes.

        Raises
        ------
        NotImplementedError
            A class without a kernel has to have it.
        """
        raise NotImplementedError(f"{type(self).__name__} has no choose(self, c)")
