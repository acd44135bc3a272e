"""How a training library makes operands narrow, by recipe: how often they are read, and by how many kernels.

As Transformer Engine does (``pytorch/csrc/quantizer.cpp`` of 2.14). With one scale for a whole tensor
(``Float8CurrentScalingQuantizer::quantize_impl``) a kernel sets a maximum to zero, one reads all numbers for
the largest, one makes the scale of it, one reads them again and converts them. With a scale for each block of
32 one kernel finds and applies it. NVFP4's blocks of 16 have a scale for all of them beside
(``NVFP4Quantizer::quantize_impl``): again a maximum is set to zero and looked for, before a kernel converts;
of all experts of a rank at once (``split_quantize_nvfp4_impl_with_rht_helper``), whose tensors the host makes
one by one, as for other recipes (``bulk_allocate_nvfp4_tensors``).
A norm's kernel finds the largest number of what it writes (``normalization.cpp``, ``FUSED_NORM_AMAX_FP8``).

Numbers are written twice, also turned round for the weights' gradient: those with scales of blocks always,
others where the GPU wants it (``nvte_is_non_tn_fp8_gemm_supported``).

Engines that serve have one kernel for it, and nothing is turned round.

Where tensor-parallel ranks share a sequence, each converts its own part and gathers what it made
(``gather_along_first_dim``, ``grad_output_preprocess``): a gather carries narrow numbers, of gradients with
scales of blocks those of rows and those of columns. A scale for the whole tensor is that of all ranks' parts
(``with_amax_reduction``): they exchange their largest number before. What Hopper wants turned round is turned
after the gather (``_create_transpose``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from cosim.gpu.kernels import NARROW_BYTES, Kernel, matmul, matmul_backward, memory, narrowed
from cosim.models.catalogue.cut import TP, Cut, Linear, Recipe
from cosim.models.parts import Exchange

_LARGEST_BYTES = 4
GROUPED_OPERATORS, EXPERT_OPERATORS = 32, 3
"""That the host issues for a grouped product, and as many for its conversion: once, and for each expert
(allocations, scales, turning them round, the kernel). For 16 experts on a rank it is what Qwen3 30B's job on
B200 takes, 8.8 ms for a layer; for 64, no less than what Nemotron 3 Super's in MXFP8 on B300 take."""


@dataclass(frozen=True, slots=True)
class Conversion:
    """An operand: kernels that find its largest number, reading all of it, and that make a scale of it,
    before the one that converts.

    ``blocks``: their scales are of rows or of columns, so that both are made. ``together``: operands of
    several experts are converted at once.
    """

    finding: int
    scaling: int
    blocks: bool
    together: bool = False

    @property
    def before(self) -> int:
        """Kernels before the one that converts."""
        return self.finding + self.scaling


CONVERSIONS: dict[Recipe, Conversion] = {
    "fp8": Conversion(2, 1, blocks=False),
    "mxfp8": Conversion(0, 0, blocks=True),
    "nvfp4": Conversion(2, 0, blocks=True, together=True),
}
_AFTER_NORM = CONVERSIONS | {"fp8": Conversion(0, 1, blocks=False)}


def linear(cut: Cut, rows: int, inner: int, columns: int, which: Linear | None = None) -> Kernel:
    """The product of a linear layer; converting what goes in is added where kernels are issued."""
    narrow = cut.narrow if which is None else cut.narrow_of(which)
    return replace(matmul(rows, inner, columns, cut.width), narrow=narrow)


def recipe_of(product: Kernel, cut: Cut) -> Recipe:
    """By which recipe a product's operands are made narrow: FP8 beside FP4 is MXFP8's."""
    assert cut.recipe is not None
    if product.narrow == "fp4":
        return "nvfp4"
    return "mxfp8" if cut.recipe == "nvfp4" else cut.recipe


def converted(product: Kernel, cut: Cut, *, normed: bool = False) -> tuple[Kernel, Kernel]:
    """What makes the left operand of a narrow product, and the product.

    ``normed``: a norm's kernel made what is converted.
    """
    assert product.narrow is not None
    if cut.forward_only:
        return narrowed(product, cut.width, product.narrow)
    recipe = recipe_of(product, cut)
    how = (_AFTER_NORM if normed else CONVERSIONS)[recipe]
    once, narrow = narrowed(product, cut.width, product.narrow)
    read = product.batch * product.rows * product.inner * cut.width
    written = (once.bytes_moved - read) * (1 + (how.blocks or cut.fp8_turned))
    issued = None if once.issued is None else once.issued + once.launches * how.before
    launches = once.launches * (1 + how.before)
    if how.together and once.launches > 1:  # of all experts at once, but for their tensors
        launches = 1 + how.before
        issued = None if once.issued is None else once.issued - once.launches
    return memory(read * (1 + (how.finding > 0)) + written, launches=launches, issued=issued), narrow


def converted_backward(product: Kernel, cut: Cut) -> tuple[Kernel, Kernel, Kernel]:
    """What makes the gradient that comes back to a product narrow, and the products that it is in."""
    for_left, for_right = matmul_backward(product, cut.width)
    convert, first = converted(replace(for_left, narrow=product.narrow), cut)
    return convert, first, converted(replace(for_right, narrow=product.narrow), cut)[1]


@dataclass(frozen=True, slots=True)
class Gathered:
    """A product's left operand, of which each tensor-parallel rank converts its part before all gather it.

    ``finding`` its largest number, all ranks' ``largest``, ``making`` narrow numbers of it, their ``gather``,
    ``turning`` them round; what a recipe or a GPU doesn't need is empty or None.
    """

    finding: tuple[Kernel, ...]
    largest: Exchange | None
    making: tuple[Kernel, ...]
    gather: Exchange
    turning: tuple[Kernel, ...]


def gathered(product: Kernel, cut: Cut, *, normed: bool = False, both: bool = False) -> Gathered:
    """What is gathered for a narrow product.

    ``normed`` as of :func:`converted`; ``both``: scales of rows and those of columns are gathered at once,
    each with its numbers.
    """
    assert product.narrow is not None
    recipe = recipe_of(product, cut)
    how = (_AFTER_NORM if normed else CONVERSIONS)[recipe]
    numbers = product.batch * product.rows * product.inner
    own, each = numbers // cut.parallel.tp, NARROW_BYTES[product.narrow]
    read, made = own * cut.width, int(own * each)
    needs_largest = CONVERSIONS[recipe].finding > 0
    turned = cut.fp8_turned and not how.blocks
    return Gathered(
        (memory(read, launches=how.finding),) if how.finding else (),
        Exchange("all_reduce", TP, _LARGEST_BYTES) if needs_largest else None,
        (memory(read + made * (1 + how.blocks), launches=1 + how.scaling),),
        Exchange("all_gather", TP, made * (1 + (both and how.blocks))),
        (memory(int(2 * numbers * each)),) if turned else (),
    )
