"""Deep learning recommendation: embedding tables over all ranks, MLPs on each.

Naumov et al., "Deep Learning Recommendation Model", arXiv 1906.00091, with dot interaction; tables shared out
over the ranks, MLPs data-parallel, as in section 4 there: each rank looks up its tables for all samples, an
all-to-all brings every rank the vectors of its own samples while the bottom MLP computes, and takes their
gradients back. Sizes are MLPerf Training v0.7's on Criteo Terabyte (40 M rows at most a table).

Not modelled: input loading, look-ups of several rows in a table, caches of hot rows; tables are split so that
each rank has as many bytes to look up (``parallel.imbalance`` for tables that aren't).
"""

from __future__ import annotations

from pydantic import Field, PositiveInt

from cosim.gpu.kernels import Kernel, KernelKind, matmul, matmul_backward, memory
from cosim.models.catalogue.cut import Parallel
from cosim.models.contract import DataParallelModel
from cosim.models.parts import Exchange, Layer, Piece


class RecommendationModel(DataParallelModel):
    """A recommendation model of your own: embedding tables, bottom and top MLP, dot interaction."""

    rows: list[PositiveInt] = Field(description="of each embedding table")
    width: PositiveInt = Field(description="numbers of an embedding, and of the bottom MLP's output")
    dense: PositiveInt = Field(description="dense features of a sample")
    bottom: list[PositiveInt] = Field(description="sizes of the bottom MLP's layers; the last is width")
    top: list[PositiveInt] = Field(description="sizes of the top MLP's layers")

    @property
    def vectors(self) -> int:
        """That interact: each table's, and the bottom MLP's."""
        return len(self.rows) + 1

    @property
    def pairs(self) -> int:
        """Interactions of a sample."""
        return self.vectors * (self.vectors - 1) // 2

    @property
    def bottom_sizes(self) -> list[tuple[int, int]]:
        """[inputs, outputs] of each of its layers."""
        return list(zip([self.dense, *self.bottom], self.bottom, strict=False))

    @property
    def top_sizes(self) -> list[tuple[int, int]]:
        """[inputs, outputs] of each of its layers: pairs and the bottom's output come in."""
        return list(zip([self.pairs + self.width, *self.top], self.top, strict=False))

    @property
    def table_parameters(self) -> int:
        """Parameters of all tables."""
        return sum(self.rows) * self.width

    @property
    def mlp_parameters(self) -> int:
        """Parameters of both MLPs."""
        return sum(n * m + m for n, m in [*self.bottom_sizes, *self.top_sizes])

    @property
    def parameters(self) -> int:
        """Parameters of the whole model."""
        return self.table_parameters + self.mlp_parameters

    @property
    def size(self) -> str:
        """For ``cosim list model``."""
        return f"{self.parameters / 1e9:.4g} G parameters, {self.mlp_parameters / 1e6:.4g} M of MLPs"

    @property
    def flops(self) -> int:
        """FLOPs of a sample, forward: the MLPs and all products of two vectors."""
        mlps = sum(2 * n * m for n, m in [*self.bottom_sizes, *self.top_sizes])
        return mlps + 2 * self.vectors**2 * self.width

    def forward_flops(self, length: int) -> float:  # noqa: ARG002 - it has no sequences
        """See :meth:`Model.forward_flops`."""
        return self.flops

    def is_uneven(self) -> bool:
        """Tables are shared out among the ranks."""
        return True

    def table_bytes(self, width: int, parallel: Parallel) -> int:
        """Tables, shared out evenly."""
        return -(-self.table_parameters // parallel.dp) * width

    def layers(self, batch: int, width: int, parallel: Parallel) -> list[Layer]:
        """Embeddings with the bottom MLP, interaction with the top one, of ``batch`` samples on one rank."""
        axes = parallel.gradient_axes
        vectors = int(batch * len(self.rows) * self.width * parallel.imbalance) * width
        exchange = Exchange("all_to_all", axes, vectors)
        bottom = _mlp(self.bottom_sizes, batch, width)
        # Each vector with each; a sample's matrix is small, so memory bounds it.
        interact = matmul(self.vectors, self.width, self.vectors, width, batch=batch)
        upper = (interact, memory(2 * batch * (self.pairs + self.width) * width))
        top = _mlp(self.top_sizes, batch, width)
        return [
            Layer(
                "embeddings",
                (
                    Piece("look-up", (memory(2 * vectors),)),
                    Piece("bottom mlp", bottom, beside=exchange),
                ),
                (
                    Piece("bottom mlp", _backward(bottom, width), beside=exchange),
                    Piece("update of rows", (memory(3 * vectors),)),
                ),
                (),
                {axes: sum(n * m + m for n, m in self.bottom_sizes)},
            ),
            Layer(
                "interaction",
                (Piece("interaction and top mlp", (*upper, *top)),),
                (Piece("top mlp and interaction", _backward((*upper, *top), width)),),
                (),
                {axes: sum(n * m + m for n, m in self.top_sizes)},
            ),
        ]

    def activation_bytes(self, batch: int, width: int) -> int:
        """What is kept until backward."""
        mlps = sum(2 * m for _, m in [*self.bottom_sizes, *self.top_sizes])
        return batch * (mlps + self.vectors * self.width + self.pairs) * width


def _mlp(sizes: list[tuple[int, int]], batch: int, width: int) -> tuple[Kernel, ...]:
    return tuple(
        kernel
        for inputs, outputs in sizes
        for kernel in (matmul(batch, inputs, outputs, width), memory(2 * batch * outputs * width))
    )


def _backward(kernels: tuple[Kernel, ...], width: int) -> tuple[Kernel, ...]:
    back: list[Kernel] = []
    for kernel in reversed(kernels):
        if kernel.kind is KernelKind.MATMUL:
            back += matmul_backward(kernel, width)
        else:
            back.append(memory(kernel.bytes_moved * 3 // 2, launches=kernel.launches))
    return tuple(back)


DLRM = RecommendationModel(
    name="DLRM",
    source="MLPerf Training v0.7, Criteo Terabyte; Naumov et al., arXiv 1906.00091",
    rows=[
        39884406, 39043, 17289, 7420, 20263, 3, 7120, 1543, 63, 38532951, 2953546, 403346, 10,
        2208, 11938, 155, 4, 976, 14, 39979771, 25641295, 39664984, 585935, 12972, 108, 36,
    ],
    width=128,
    dense=13,
    bottom=[512, 256, 128],
    top=[1024, 1024, 512, 256, 1],
)  # fmt: skip
