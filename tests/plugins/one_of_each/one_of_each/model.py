"""A multi-layer perceptron, which every rank has all of."""

from __future__ import annotations

from pydantic import Field

from cosim.plugins import DataParallelModel, Layer, Parallel, Piece, matmul, matmul_backward


class Mlp(DataParallelModel):
    """A multi-layer perceptron: products of matrices, nothing else"""

    sizes: list[int] = Field(description="of its layers, the input's first")

    @property
    def size(self) -> str:
        return f"{sum(n * m for n, m in zip(self.sizes, self.sizes[1:], strict=False))} parameters"

    def layers(self, batch: int, width: int, parallel: Parallel) -> list[Layer]:
        made = []
        for number, (n, m) in enumerate(zip(self.sizes, self.sizes[1:], strict=False)):
            product = matmul(batch, n, m, width)
            forward, backward = Piece("forward", (product,)), Piece("back", matmul_backward(product, width))
            counts = {parallel.gradient_axes: n * m}
            made.append(Layer(f"layer {number}", (forward,), (backward,), parameters=counts))
        return made

    def activation_bytes(self, batch: int, width: int) -> int:
        return batch * sum(self.sizes) * width
