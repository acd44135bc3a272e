"""How a training library makes operands narrow, by recipe: how often they are read, and by how many kernels.

As Transformer Engine does (``pytorch/csrc/quantizer.cpp`` of 2.14). With one scale for a whole tensor
(``Float8CurrentScalingQuantizer::quantize_impl``) a kernel sets a maximum to zero, one reads all numbers for
the largest, one makes the scale of it, one reads them again and converts them. With a scale for each block of
32 one kernel finds and applies it. NVFP4's blocks of 16 have a scale for all of them beside
(``NVFP4Quantizer::quantize_impl``): again a maximum is set to zero and looked for, before a kernel converts.
A norm's kernel finds the largest number of what it writes (``normalization.cpp``, ``FUSED_NORM_AMAX_FP8``).

Numbers are written twice, also turned round for the weights' gradient: those with scales of blocks always,
others where the GPU wants it (``nvte_is_non_tn_fp8_gemm_supported``). Not modelled: the largest number of
all ranks' parts, where tensor-parallel ranks share a sequence.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from cosim.gpu.kernels import Kernel, matmul_backward, memory, narrowed
from cosim.models.catalogue.cut import Cut, Recipe


@dataclass(frozen=True, slots=True)
class Conversion:
    """Of an operand: kernels before the one that converts, and whether one of them reads all of it.

    ``blocks``: their scales are of rows or of columns, so that both are made.
    """

    before: int
    searched: bool
    blocks: bool


CONVERSIONS: dict[Recipe, Conversion] = {
    "fp8": Conversion(3, searched=True, blocks=False),
    "mxfp8": Conversion(0, searched=False, blocks=True),
    "nvfp4": Conversion(2, searched=True, blocks=True),
}
_AFTER_NORM = CONVERSIONS | {"fp8": Conversion(1, searched=False, blocks=False)}


def converted(product: Kernel, cut: Cut, *, normed: bool = False) -> tuple[Kernel, Kernel]:
    """What makes the left operand of a narrow product, and the product.

    ``normed``: a norm's kernel made what is converted.
    """
    assert product.narrow is not None
    assert cut.recipe is not None
    how = (_AFTER_NORM if normed else CONVERSIONS)[cut.recipe]
    once, narrow = narrowed(product, cut.width, product.narrow)
    read = product.batch * product.rows * product.inner * cut.width
    written = (once.bytes_moved - read) * (1 + (how.blocks or cut.fp8_turned))
    issued = None if once.issued is None else once.issued + once.launches * how.before
    launches = once.launches * (1 + how.before)
    return memory(read * (1 + how.searched) + written, launches=launches, issued=issued), narrow


def converted_backward(product: Kernel, cut: Cut) -> tuple[Kernel, Kernel, Kernel]:
    """What makes the gradient that comes back to a product narrow, and the products that it is in."""
    for_left, for_right = matmul_backward(product, cut.width)
    convert, first = converted(replace(for_left, narrow=product.narrow), cut)
    return convert, first, converted(replace(for_right, narrow=product.narrow), cut)[1]
