"""A catalogue model as layers with times and bytes, for whoever cuts it between layers.

Weights and gradients have as many bytes as gradients are exchanged with. Not modelled: what a cut within a
residual block sends beside the layer's output; the host's time to launch kernels; the optimizer, which is no
layer's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cosim.context import Context
from cosim.errors import WorkloadError
from cosim.gpu.gpus import DTYPE_BYTES, Gpu
from cosim.gpu.timer import GpuTimer
from cosim.models.parts import Layer, Piece
from cosim.workload.layers.profile import LayerProfile, ProfiledLayer

if TYPE_CHECKING:
    from cosim.models.catalogue.workload import ModelWorkload


def layer_profile(spec: ModelWorkload, context: Context) -> LayerProfile:
    """Layers of one replica, in order: picoseconds and bytes of a micro-batch.

    Raises
    ------
    WorkloadError
        Layers that talk to other replicas; a GPU whose table can't be read.
    """
    job = spec.job()
    width = DTYPE_BYTES[spec.gradient_dtype]
    layers = [layer for stage in job.stages for chunk in stage for layer in chunk]

    def takes_ps(pieces: tuple[Piece, ...], timer: GpuTimer) -> int:
        return sum(timer.kernels_ps(piece.kernels) for piece in pieces)

    def busy(one: Gpu) -> list[int]:
        timer = one.timer(spec.dtype)
        return [sum(takes_ps((*each.forward, *each.recompute, *each.backward), timer) for each in layers)]

    timer = spec.built_gpu(context).clocked(busy).timer(spec.dtype)
    for layer in layers:
        if _talks(layer):
            raise WorkloadError(
                f"{job.name}: {layer.name} talks to other replicas while it computes",
                hint="layers of a model that each replica has all of, or workload: {kind: model, ...}",
            )
    return LayerProfile(
        job.name,
        tuple(
            ProfiledLayer(
                layer.name,
                takes_ps(layer.forward, timer),
                takes_ps((*layer.recompute, *layer.backward), timer),
                layer.output_bytes or job.training.boundary_bytes,
                layer.num_parameters * width,
            )
            for layer in layers
        ),
    )


def _talks(layer: Layer) -> bool:
    pieces = (*layer.forward, *layer.recompute, *layer.backward)
    return any(one is not None and "dp" in one.axes for piece in pieces for one in (piece.then, piece.beside))
