"""Convolutional networks, layer by layer: ResNet-50 and VGG-16 on 224 x 224 images.

He et al., "Deep Residual Learning for Image Recognition", CVPR 2016, doi:10.1109/CVPR.2016.90, table 1, with
the stride in the 3 x 3 convolution of a block (torchvision's, "v1.5"); Simonyan and Zisserman, arXiv
1409.1556, configuration D. A convolution is timed as the matrix product it is computed by (implicit GEMM),
2 k^2 c_in c_out h w FLOPs an image. What follows it is memory-bound, PyTorch's operators: batch norm reads
what it normalises twice (statistics, then the norm), and so both operands of its backward; an activation
works in place; a branch is added to the other, and its gradient to the other's.

Not modelled: Winograd and FFT convolutions, pooling, input loading, channels-first copies.
"""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import Field, PositiveInt

from cosim.gpu.kernels import Kernel, KernelKind, matmul, matmul_backward, memory
from cosim.models.catalogue.cut import Parallel
from cosim.models.contract import DataParallelModel
from cosim.models.parts import Layer, Piece
from cosim.spec import Spec


class Convolution(Spec):
    """A convolution, with what follows it element by element."""

    inputs: PositiveInt = Field(description="channels in")
    outputs: PositiveInt = Field(description="channels out")
    kernel: PositiveInt = Field(description="side of the kernel")
    side: PositiveInt = Field(description="side of the output, in pixels")
    stride: PositiveInt = Field(1, description="input pixels for an output pixel, along a side")
    norm: bool = Field(True, description="batch norm, and no bias")
    activation: bool = Field(True, description="an activation behind, in place")
    adds: bool = Field(False, description="another branch is added before the activation")

    @property
    def parameters(self) -> int:
        """Weights, and bias or norm."""
        return self.inputs * self.outputs * self.kernel**2 + self.outputs * (2 if self.norm else 1)

    @property
    def flops(self) -> int:
        """FLOPs of an image, forward."""
        return 2 * self.kernel**2 * self.inputs * self.outputs * self.side**2


class ConvolutionalModel(DataParallelModel):
    """A convolutional network of your own: convolutions, then linear layers."""

    convolutions: list[Convolution] = Field(description="in order; parallel branches one after the other")
    linear: list[tuple[PositiveInt, PositiveInt]] = Field(description="[inputs, outputs] of linear layers")

    @property
    def parameters(self) -> int:
        """Parameters of the whole model."""
        linear = sum(inputs * outputs + outputs for inputs, outputs in self.linear)
        return sum(c.parameters for c in self.convolutions) + linear

    @property
    def flops(self) -> int:
        """FLOPs of an image, forward."""
        linear = sum(2 * inputs * outputs for inputs, outputs in self.linear)
        return sum(c.flops for c in self.convolutions) + linear

    def forward_flops(self, length: int) -> float:  # noqa: ARG002 - it has no sequences
        """See :meth:`Model.forward_flops`."""
        return self.flops

    @property
    def size(self) -> str:
        """For ``cosim list model``."""
        return f"{self.parameters / 1e6:.4g} M parameters"

    def layers(self, batch: int, width: int, parallel: Parallel) -> list[Layer]:
        """Layers of ``batch`` images on one rank."""
        axes = parallel.gradient_axes
        made = [
            _layer(
                f"convolution {number}",
                _products(c, batch, width),
                c.parameters,
                axes,
                width,
                batch * c.outputs * c.side**2,
            )
            for number, c in enumerate(self.convolutions)
        ]
        for number, (inputs, outputs) in enumerate(self.linear):
            out = batch * outputs * width
            kernels = (
                matmul(batch, inputs, outputs, width),
                memory(2 * out, returned=(memory(3 * out),)),
            )
            parameters = inputs * outputs + outputs
            made.append(_layer(f"linear {number}", kernels, parameters, axes, width, batch * outputs))
        return made

    def activation_bytes(self, batch: int, width: int) -> int:
        """What is kept until backward: each convolution's output, before and after the norm."""
        pixels = sum((1 + c.norm) * c.outputs * c.side**2 for c in self.convolutions)
        return batch * (pixels + sum(outputs for _, outputs in self.linear)) * width


def _products(c: Convolution, batch: int, width: int) -> tuple[Kernel, ...]:
    rows, inner = batch * c.side**2, c.kernel**2 * c.inputs
    moved = (rows * c.stride**2 * c.inputs + inner * c.outputs + rows * c.outputs) * width
    product = Kernel(
        KernelKind.MATMUL, 2 * rows * inner * c.outputs, moved, 1, rows, inner, c.outputs
    )  # fmt: skip
    out = rows * c.outputs * width
    after: list[Kernel] = []
    if c.norm:
        back = memory(5 * out, launches=2, issued=1)
        after.append(memory(out, elements=rows * c.outputs, returned=(back,)))  # mean and variance
        after.append(memory(2 * out, issued=0, returned=()))
    if c.adds:
        after.append(memory(3 * out))  # backward: two gradients of what both branches read are added
    if c.activation:
        after.append(memory(2 * out, returned=(memory(3 * out),)))
    return product, *after


def _layer(
    name: str, kernels: tuple[Kernel, ...], parameters: int, axes: tuple[str, ...], width: int, outputs: int
) -> Layer:
    return Layer(
        name,
        (Piece(name, kernels),),
        (Piece(name, tuple(_backward(kernels, width))),),
        (),
        {axes: parameters},
        output_bytes=outputs * width,
    )


def _backward(kernels: Iterable[Kernel], width: int) -> Iterable[Kernel]:
    for kernel in reversed(tuple(kernels)):
        if kernel.kind is KernelKind.MATMUL:
            for product in matmul_backward(kernel, width):
                moved = min(product.bytes_moved, kernel.bytes_moved)  # no patches in memory
                yield Kernel(
                    product.kind, product.flops, moved, 1, product.rows, product.inner, product.columns
                )
        elif kernel.returned is not None:
            yield from kernel.returned
        else:
            yield kernel


def _resnet50() -> ConvolutionalModel:
    convolutions = [Convolution(inputs=3, outputs=64, kernel=7, side=112, stride=2)]
    inputs = 64
    for width, blocks, side in ((64, 3, 56), (128, 4, 28), (256, 6, 14), (512, 3, 7)):
        for block in range(blocks):
            stride = 2 if block == 0 and width > 64 else 1
            outputs = 4 * width
            convolutions += [
                Convolution(inputs=inputs, outputs=width, kernel=1, side=side * stride),
                Convolution(inputs=width, outputs=width, kernel=3, side=side, stride=stride),
                Convolution(inputs=width, outputs=outputs, kernel=1, side=side, adds=True),
            ]
            if block == 0:
                convolutions.append(
                    Convolution(
                        inputs=inputs, outputs=outputs, kernel=1, side=side, stride=stride, activation=False
                    )
                )
            inputs = outputs
    return ConvolutionalModel(
        name="ResNet-50",
        source="He et al., CVPR 2016, doi:10.1109/CVPR.2016.90, table 1",
        convolutions=convolutions,
        linear=[(2048, 1000)],
    )


def _vgg16() -> ConvolutionalModel:
    convolutions, inputs = [], 3
    for outputs, count, side in ((64, 2, 224), (128, 2, 112), (256, 3, 56), (512, 3, 28), (512, 3, 14)):
        for _ in range(count):
            convolutions.append(
                Convolution(inputs=inputs, outputs=outputs, kernel=3, side=side, norm=False)
            )  # fmt: skip
            inputs = outputs
    return ConvolutionalModel(
        name="VGG-16",
        source="Simonyan and Zisserman, arXiv 1409.1556, configuration D",
        convolutions=convolutions,
        linear=[(512 * 7 * 7, 4096), (4096, 4096), (4096, 1000)],
    )


RESNET50 = _resnet50()
VGG16 = _vgg16()
