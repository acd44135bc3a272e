"""Megatron-LM with an optimizer of another size, whose host waits for the GPU after each pass."""

from dataclasses import replace

from pydantic import Field

from cosim.plugins import Megatron


class EightBit(Megatron):
    """Megatron-LM with an 8-bit optimizer; its host waits for the GPU after each pass"""

    state: int = Field(6, gt=0, description="bytes of the optimizer for each parameter; Adam's are 12")

    def job(self, workload, model):
        job = super().job(workload, model)
        training = replace(job.training, synchronous_passes=True)
        memory = replace(job.memory, optimizer=job.memory.optimizer * self.state // 12)
        told = f"the optimizer keeps {self.state} bytes for each parameter"
        return replace(job, training=training, memory=memory, assumed=(*job.assumed, told))
