"""How an iteration of training is done, whatever the framework, and the compute model as builders ask it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from cosim.gpu.kernels import Kernel
from cosim.models.parts import Exchange
from cosim.models.schedule import ScheduleName
from cosim.workload.program import DeviceMesh

OPTIMIZER, GRADIENTS, PARAMETERS = "optimizer states", "gradients", "parameters"
"""What a job has of memory beside activations, by name."""


class Timer(Protocol):
    """A compute model, as the builder asks it."""

    def kernels_ps(self, kernels: Sequence[Kernel]) -> int:
        """Picoseconds that kernels take on the GPU, one after another."""

    def host_ps(self, launches: int) -> int:
        """Picoseconds that the host takes to issue so many operators; 0: it is never waited for."""

    def step_ps(self) -> int:
        """Picoseconds of the host in an iteration beside its operators."""

    def slowed_ps(self, duration_ps: int) -> int:
        """What a computation takes while a collective runs on the same GPU."""


@dataclass(frozen=True, slots=True)
class Training:
    """How an iteration is done.

    Attributes
    ----------
    boundary_bytes
        What a rank sends to the next stage: its part of the hidden state.
    boundary_gather
        How a stage makes it whole, if ranks send parts.
    tied_bytes
        Gradients that first and last stage share, of one rank; 0: none.
    gradient_width, parameter_width
        Bytes of a gradient as it is exchanged, and of a parameter.
    bucket
        Gradients exchanged at once while backward goes on; None: all after the last backward.
    norm_axes
        Axes over which the gradients' norm is summed, one after the other.
    blocking_sends
        Computation waits until what it sends has arrived, as Megatron-LM's does without overlap.
    synchronous_passes
        The host issues nothing of the next pass until the GPU has ended the one before.
    synchronous_exchanges
        The host issues nothing until an exchange between pieces has ended.
    overlap_parameters
        With a sharded optimizer, parameters are gathered bucket by bucket while the iteration's first
        forward passes go on, not all after the optimizer's step.
    remote
        What lives in remote memory, of :data:`OPTIMIZER`, :data:`GRADIENTS`, :data:`PARAMETERS`.
    saved_bytes, layers_out
        What a layer keeps until its backward, 0: layers don't all keep as much; and of how many it waits in
        remote memory.
    overlap_exchanges
        Tensor-parallel gathers and scatters go on beside the products that they belong to, ring step by ring
        step.
    ep_axes
        Along which experts' tokens go.
    overlap_experts
        All-to-alls of experts go on beside computation, another micro-batch's (which takes as long as what
        follows them), in passes that have another beside them.
    """

    mesh: DeviceMesh
    micro_batches: int
    schedule: ScheduleName
    boundary_bytes: int
    boundary_gather: Exchange | None = None
    tied_bytes: int = 0
    gradient_width: int = 4
    parameter_width: int = 2
    bucket: int | None = None
    sharded_optimizer: bool = False
    norm_axes: tuple[str, ...] = ("tp", "pp")
    blocking_sends: bool = False
    synchronous_passes: bool = False
    synchronous_exchanges: bool = False
    overlap_parameters: bool = False
    overlap_exchanges: bool = False
    overlap_experts: bool = False
    ep_axes: tuple[str, ...] = ("ep",)
    remote: frozenset[str] = frozenset()
    saved_bytes: int = 0
    layers_out: int = 0

    def carried_on(self, *, paired: bool) -> tuple[tuple[str, ...], ...]:
        """Exchanges between pieces that go on beside computation: collective and axes.

        ``paired``: of a pass beside which a pass of another micro-batch runs.
        """
        tensor = (("all_gather", "tp"), ("reduce_scatter", "tp")) if self.overlap_exchanges else ()
        return (*tensor, *((("all_to_all", *self.ep_axes),) if self.overlap_experts and paired else ()))
