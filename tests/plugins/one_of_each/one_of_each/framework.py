"""A framework that does as Megatron-LM does, but whose host waits for the GPU after every pass."""

from __future__ import annotations

from dataclasses import replace

from pydantic import Field

from cosim.plugins import Megatron, ModelJob, ModelWorkload, TransformerModel


class Waiting(Megatron):
    """Megatron-LM, whose host waits after each pass, in optimizer states of another size"""

    state_bytes: int = Field(12, ge=0, description="of the optimizer, for each parameter")

    def job(self, workload: ModelWorkload, model: TransformerModel) -> ModelJob:
        job = super().job(workload, model)
        memory = replace(job.memory, optimizer=job.memory.optimizer * self.state_bytes // 12)
        training = replace(job.training, synchronous_passes=True)
        return replace(job, training=training, memory=memory, assumed=("the host waits after each pass",))
