"""Boards of GPUs on a switch each, the boards' switches on another."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from cosim.plugins import Builder, Context, Count, Latency, Rate, Topology, TopologySpec


class Boards(TopologySpec):
    """GPUs on boards, each with a switch; a network between"""

    boards: Count = Field(description="how many")
    gpus: Count = Field(description="GPUs of a board")
    board_rate: Rate = Field(description="of each GPU to its board's switch")
    rate: Rate = Field(description="of each GPU to the network")
    latency: Latency = Field(description="of each link")

    def build(self, context: Context) -> Topology:
        builder = Builder(f"gpu{k}" for k in range(self.boards * self.gpus))
        gpu = np.arange(self.boards * self.gpus)
        boards = builder.add_switches(f"board{k}" for k in range(self.boards))
        planes = builder.add_switches(["plane0", "plane1"])
        builder.connect(gpu, boards[gpu // self.gpus], self.board_rate, self.latency, scale_up=True)
        builder.connect(gpu[:, None], planes[None, :], self.rate, self.latency)
        return builder.topology("boards", self.routing, context, dims=(self.gpus, self.boards))
