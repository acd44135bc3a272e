"""A fast stand-in for the full path, for fitting only: the same workload, the replay worked out by hand.

Kernels, pieces and passes are those that the workload is made of (so no law is written twice); collectives
take their closed forms without contention; a pipeline's passes are walked through stage by stage. One
evaluation of all 774 rows takes tens of milliseconds, and agrees with the full path within 0.3 % (2.5 %
where tensor parallelism crosses hosts). Predictions that are reported come from the full path:
``measured.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

from cosim.gpu.gpus import Gpu
from cosim.gpu.kernels import Kernel
from cosim.gpu.timer import GpuTimer
from cosim.models.parts import Exchange, Piece, merged
from cosim.models.schedule import passes
from cosim.models.transformer import Transformer
from cosim.pattern.nccl import Nccl
from cosim.pattern.nccl_fit import host_s
from cosim.pattern.template import Collective
from cosim.units import PS_PER_S
from tests.lab.validation.measured_jobs import GPUS, megatron

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
NVLINK = 300e9
"""Bytes a second of a GPU to the NVSwitch."""
HOST_NICS = 100e9
_ADAM_BYTES = 30


@dataclass(eq=False)
class Job:
    """One row's structure: steps of passes, what they do by number, and the order of passes."""

    settings: Mapping[str, int]
    stages: int
    micro_batches: int
    kernels: list[list[int]]
    launches: F64
    exchange: I64
    forward: tuple[I64, I64]
    backward: tuple[I64, I64]
    order: tuple[I64, I64]
    parameters: int
    boundary: int
    gather: int
    tied: int
    synchronous: bool


class Surrogate:
    """All rows of a table, prepared; ``predict`` gives seconds for parameters."""

    def __init__(self, rows: Sequence[Mapping[str, int]]) -> None:
        self._kernels: dict[Kernel, int] = {}
        self._exchanges: dict[tuple[str, int, int], int] = {}
        self.jobs = [self._job(row) for row in rows]

    def predict(self, gpu: Gpu, nccl: Nccl) -> F64:
        """Seconds of an iteration of each row."""
        kernel_s = self._kernel_s(gpu)
        exchange_s = np.array([_exchange_s(*key, nccl) for key in self._exchanges])
        return np.array([self._iteration_s(job, kernel_s, exchange_s, gpu, nccl) for job in self.jobs])

    def _job(self, row: Mapping[str, int]) -> Job:
        model = Transformer.model_validate({k: v for k, v in megatron(row).items() if k != "kind"})
        job, tp = model.model.job(), row["tp"]
        training = job.training
        kernels: list[list[int]] = []
        launches: list[int] = []
        exchange: list[int] = []

        def steps(pieces: Sequence[Piece]) -> list[int]:
            first = len(kernels)
            for piece in merged(pieces):
                shared = piece.then is not None and tp > 1
                kernels.append([self._kernels.setdefault(k, len(self._kernels)) for k in piece.kernels])
                launches.append(sum(k.launches for k in piece.kernels) + shared)
                exchange.append(self._exchange(piece.then, tp) if piece.then is not None and shared else -1)
            return list(range(first, len(kernels)))

        forward, backward, parameters = [], [], []
        for (layers,) in job.stages:
            forward.append([step for layer in layers for step in steps(layer.forward)])
            backward.append(
                [step for layer in reversed(layers) for step in steps((*layer.recompute, *layer.backward))]
            )
            parameters.append(sum(layer.num_parameters for layer in layers))
        order = []
        for stage in range(row["pp"]):
            each = passes("1f1b", stage, row["pp"], model.micro_batches)
            order.append([(one.micro_batch + 1) * (1 if one.forward else -1) for one in each])
        gather = training.boundary_gather
        return Job(
            row,
            row["pp"],
            model.micro_batches,
            kernels,
            np.array(launches, np.float64),
            np.array(exchange, np.int64),
            _ragged(forward),
            _ragged(backward),
            _ragged(order),
            max(parameters),
            training.boundary_bytes,
            -1 if gather is None else self._exchange(gather, tp),
            training.tied_bytes,
            training.synchronous_exchanges,
        )

    def _exchange(self, exchange: Exchange, ranks: int) -> int:
        key = (exchange.collective, ranks, exchange.size_bytes)
        return self._exchanges.setdefault(key, len(self._exchanges))

    def _kernel_s(self, gpu: Gpu) -> F64:
        timer = GpuTimer(gpu, "fp16")
        return np.array([timer.kernel_ps(kernel) / PS_PER_S for kernel in self._kernels])

    def _iteration_s(self, job: Job, kernel_s: F64, exchange_s: F64, gpu: Gpu, nccl: Nccl) -> float:
        row = job.settings
        kernels = np.array([kernel_s[each].sum() for each in job.kernels])
        host = job.launches * gpu.host.operator_time / PS_PER_S
        shared = (
            np.where(job.exchange >= 0, exchange_s[job.exchange], 0.0) if len(exchange_s) else 0 * kernels
        )
        inside = row["dp"] * row["tp"] < GPUS
        link = NVLINK * nccl.nvlink_efficiency if inside else HOST_NICS / GPUS
        gather = float(exchange_s[job.gather]) if job.gather >= 0 else 0.0
        steps = (kernels, host, shared)
        took = pipeline_s(
            job.stages, job.micro_batches, *job.forward, *job.backward, *job.order, *steps,
            job.boundary / link + 5e-6, gather, job.synchronous,
        )  # fmt: skip
        gradients = job.parameters * 2
        if row["dp"] > 1:
            took += _gradients_s(row["dp"], max(1, min(GPUS // row["tp"], row["dp"])), gradients, nccl)
        adam = job.parameters * _ADAM_BYTES * 8 / (gpu.memory_rate * gpu.efficiency.memory_peak)
        return float(took + job.tied / link + adam + gpu.host.step_time / PS_PER_S)


def _ragged(lists: Sequence[Sequence[int]]) -> tuple[I64, I64]:
    """Row pointers and values."""
    return (
        np.cumsum([0, *(len(each) for each in lists)]).astype(np.int64),
        np.array([value for each in lists for value in each], np.int64),
    )


def _exchange_s(collective: str, ranks: int, size: int, nccl: Nccl) -> float:
    """A tensor-parallel exchange: in a host its closed form, across hosts a Simple ring's."""
    if ranks <= GPUS:
        return host_s(nccl, Collective(collective), ranks, size, NVLINK)
    both = 2 if collective == "all_reduce" else 1
    part = size if collective == "all_gather" else size / ranks
    gap = nccl.loop_gap / PS_PER_S * both / 2 * part / nccl.buffer
    steps = both * (ranks - 1)
    across = both * (ranks // GPUS - 1)
    start = nccl.start_ps("ring", "Simple", ranks, round(part * ranks)) / PS_PER_S
    latency = start + across * 14e-6 + (steps - across) * 3.4e-6
    return latency + steps * part / (HOST_NICS * nccl.network_efficiency) + gap


def _gradients_s(ranks: int, local: int, size: int, nccl: Nccl) -> float:
    """Data-parallel all-reduce, ``local`` of the ranks on each host, other groups beside it."""
    steps = 2 * (ranks - 1)
    gap = nccl.loop_gap / PS_PER_S * size / ranks / nccl.buffer
    if ranks <= local:
        rate, latency = NVLINK * nccl.nvlink_efficiency, 3.4e-6
    else:
        rate, latency = HOST_NICS / GPUS * local * nccl.network_efficiency, 14e-6
    return nccl.latency / PS_PER_S + steps * (latency + size / ranks / rate) + gap


@numba.njit(cache=True)
def pipeline_s(
    stages: int,
    micro_batches: int,
    forward_ptr: I64,
    forward: I64,
    backward_ptr: I64,
    backward: I64,
    order_ptr: I64,
    order: I64,
    gpu: F64,
    host: F64,
    shared: F64,
    boundary: float,
    gather: float,
    synchronous: bool,
) -> float:
    """Seconds until the last stage's last pass ends; the host waits for the GPU after each pass.

    ``synchronous``: and for each exchange.
    """
    ahead = np.full((stages, micro_batches), -1.0)
    back = np.full((stages, micro_batches), -1.0)
    now = np.zeros(stages)
    at = order_ptr[:-1].copy()
    left = order_ptr[stages]
    while left > 0:
        for s in range(stages):
            while at[s] < order_ptr[s + 1]:
                number = abs(order[at[s]]) - 1
                is_forward = order[at[s]] > 0
                issued = now[s]
                time = now[s]
                if is_forward and s > 0:
                    if ahead[s - 1, number] < 0:
                        break
                    time = max(time, ahead[s - 1, number] + boundary) + gather
                if not is_forward and s < stages - 1:
                    if back[s + 1, number] < 0:
                        break
                    time = max(time, back[s + 1, number] + boundary) + gather
                pointer = forward_ptr if is_forward else backward_ptr
                steps = forward if is_forward else backward
                for k in range(pointer[s], pointer[s + 1]):
                    step = steps[k]
                    time = max(time, issued) + gpu[step]
                    issued += host[step]
                    time = max(time, issued) + shared[step]
                    if synchronous and shared[step] > 0:
                        issued = time
                now[s] = max(time, issued)
                if is_forward:
                    ahead[s, number] = now[s]
                else:
                    back[s, number] = now[s]
                at[s] += 1
                left -= 1
    return float(now.max())
