"""A multi-layer perceptron, which every rank has all of."""

from itertools import pairwise

from pydantic import Field

from cosim.plugins import DataParallelModel, Layer, Piece, matmul, matmul_backward, memory


class Perceptron(DataParallelModel):
    """A multi-layer perceptron: products of matrices, each with its activation"""

    sizes: list[int] = Field(min_length=2, description="of its layers, the input's first")

    def layers(self, batch, width, parallel):
        made = []
        for number, (inputs, outputs) in enumerate(pairwise(self.sizes)):
            product = matmul(batch, inputs, outputs, width)  # FLOPs and bytes of y = x W
            activation = memory(2 * batch * outputs * width)  # reads and writes y
            forward = Piece(f"layer {number}", (product, activation))
            backward = Piece(f"layer {number}", (activation, *matmul_backward(product, width)))
            summed = {parallel.gradient_axes: inputs * outputs}  # parameters, by who has a copy
            made.append(Layer(f"layer {number}", (forward,), (backward,), parameters=summed))
        return made

    def activation_bytes(self, batch, width):
        return batch * sum(self.sizes) * width
