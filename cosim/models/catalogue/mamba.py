"""Sizes of a Mamba-2 layer, its parameters and its FLOPs in closed form.

Dao and Gu, "Transformers are SSMs", arXiv 2405.21060: section 7 has the block, section 6 the algorithm in
chunks, whose products are counted here. Parameters are those of ``mamba_ssm``'s and Megatron-Core's mixer:
one product makes gate, input, B, C and time steps; a causal convolution of input, B and C; A, D and a bias
for each head; a norm before the product out.
"""

from __future__ import annotations

from typing import Self

from pydantic import Field, PositiveInt, model_validator

from cosim.spec import Spec

STATE_BYTES = 4
"""Bytes of a number of the state that is kept in serving: fp32, as the released configurations have it."""


class Mamba(Spec):
    """Mamba-2's state space, in place of attention."""

    state: PositiveInt = Field(description="size N of the state of each of a head's channels")
    heads: PositiveInt = Field(description="heads, each with a decay of its own")
    head_dim: PositiveInt = Field(64, description="channels P of a head")
    groups: PositiveInt = Field(8, description="groups of heads that have the same B and C")
    conv: PositiveInt = Field(4, description="tokens that the causal convolution sees")
    chunk: PositiveInt = Field(128, description="tokens that are multiplied at once; states pass between")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.heads % self.groups:
            raise ValueError(f"heads {self.heads} isn't a multiple of groups {self.groups}")
        return self

    @property
    def inner(self) -> int:
        """Channels of all heads."""
        return self.heads * self.head_dim

    @property
    def convolved(self) -> int:
        """Channels of the convolution: the input's, and B and C of each group."""
        return self.inner + 2 * self.groups * self.state

    @property
    def projected(self) -> int:
        """Columns of the product in: the gate, what is convolved, a time step for each head."""
        return self.inner + self.convolved + self.heads

    def matrices(self, hidden: int) -> int:
        """Weights of the products in and out."""
        return hidden * (self.projected + self.inner)

    def parameters(self, hidden: int) -> int:
        """Parameters of a layer, without the norm before it."""
        return self.matrices(hidden) + self.convolved * (self.conv + 1) + 3 * self.heads + self.inner

    def flops_per_token(self) -> int:
        """Convolution, and products in chunks: C with B, what that weighs, states made and read."""
        within = 2 * self.chunk * (self.groups * self.state + self.inner)
        return 2 * self.convolved * self.conv + within + 4 * self.inner * self.state

    def kept_bytes(self, width: int) -> int:
        """State of a sequence in serving: the convolution's last tokens, and that of each channel."""
        return self.convolved * self.conv * width + self.inner * self.state * STATE_BYTES
