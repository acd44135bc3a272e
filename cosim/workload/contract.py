"""What a workload of a scenario is: a spec that builds a :class:`~cosim.workload.program.Workload`.

::

    class Pair(WorkloadSpec):
        '''Rank 0 sends to rank 1'''

        size: SizeBytes = Field(ge=0, description="of the message")

        def build(self, context: Context) -> Workload:
            there, back = Peer(rank=1), Peer(rank=0)
            send = Operation("send", OpKind.SEND, size_bytes=self.size, peer=there)
            receive = Operation("receive", OpKind.RECV, size_bytes=self.size, peer=back)
            programs = (Program("sender", (send,)), Program("receiver", (receive,)))
            return Workload("pair", DeviceMesh({"rank": 2}), programs, np.array([0, 1], np.int32))
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from cosim.context import Context
from cosim.spec import Spec
from cosim.workload.program import Workload


class WorkloadSpec(Spec):
    """Base of the workloads that a scenario can name. Fields are settings."""

    copies_differ: ClassVar[bool] = False
    """Jobs of a ``count`` have workloads of their own, each built with its ``context.copy``; otherwise one is
    built for all."""

    @abstractmethod
    def build(self, context: Context) -> Workload:
        """What each rank computes and sends in an iteration; relative files start from ``context.base``.

        It is checked (:func:`cosim.workload.check.check`) by who asks for it.

        Raises
        ------
        WorkloadError
            A file that is missing or can't be meant, with its line; settings that don't fit each other.
        """

    def size_about(self) -> int:
        """How many ranks and operations of programs it will have; 0: not known before, and not large."""
        return 0

    def runs_on(self, context: Context) -> Spec | None:  # noqa: ARG002 - for those whose file names it
        """The GPU whose numbers its times come from; None: none's.

        A workload that has one is timed on another by its field ``gpu``.

        Raises
        ------
        WorkloadError
            A file that names it is missing or damaged.
        """
        return None

    def issued_by(self) -> Spec | None:
        """The host named beside its GPU, which says what issuing operators takes; None: the GPU's own.

        A workload that may have one is issued by another by its field ``host``.
        """
        return None

    def memory_needed(self) -> int:
        """Bytes on the fullest of its GPUs; 0: not known."""
        return 0

    def tokens_done(self) -> int:
        """Tokens, or samples where there are no sequences, that an iteration works on; 0: not known."""
        return 0

    def other_scripts(self) -> list[tuple[str, str]]:
        """Settings that the scenario doesn't give, each with another value: what a measured job may have been
        instead, for `cosim fit`.
        """
        return []

    def idle_in(self, workload: Workload) -> list[tuple[str, str]]:  # noqa: ARG002 - for those that read files
        """As ``idle_settings``, once the workload is made: (field, why)."""
        return []
