"""What a model is made of, seen from one rank: layers of pieces; a piece is kernels, then an exchange.

This is the seam between models and schedules. A model says what its layers do on one rank, forward and
backward, and what they exchange with whom; :mod:`cosim.models.training` puts layers on pipeline
stages and orders them. Sizes are of one micro-batch on one rank, already cut by tensor, sequence, expert or
context parallelism.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from cosim.gpu.kernels import Kernel


@dataclass(frozen=True, slots=True)
class Exchange:
    """A collective over mesh axes that the kernels after it wait for; bytes as ``Collective`` counts them."""

    collective: str
    axes: tuple[str, ...]
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Weight:
    """A parameter on this rank, where a model tells its parameters apart.

    Attributes
    ----------
    rows, count
        Length of its first dimension, and all its numbers, on this rank before it is sharded for data
        parallelism.
    made
        Numbers of its gradient as backward makes it, of which the rank then keeps ``count``.
    summed
        Axes of model parallelism over which its gradient is still to be summed (a norm's, under sequence
        parallelism).
    expert
        Whether it belongs to experts, which expert-parallel ranks share.
    copied
        Whether it is another stage's, of which this one has a copy (a tied embedding).
    """

    name: str
    rows: int
    count: int
    summed: tuple[str, ...] = ()
    expert: bool = False
    made: int = 0
    copied: bool = False

    @property
    def gradient(self) -> int:
        """Numbers of its gradient until it is exchanged."""
        return self.made or self.count

    def is_short(self, ranks: int) -> bool:
        """Whether it has fewer experts than ranks."""
        return self.expert and self.rows < ranks

    def share(self, ranks: int) -> int:
        """Numbers of it that each of so many ranks has: the largest share.

        Sharded along its first dimension; where that is too short (few experts), along another.
        """
        if self.is_short(ranks):
            return -(-self.count // ranks)
        return -(-self.rows // ranks) * (self.count // self.rows)


@dataclass(frozen=True, slots=True)
class Mark:
    """What begins or ends here, for those who exchange parameters or issue kernels: ``host waits``, ``experts
    begin``, ``experts end``.
    """

    what: str


@dataclass(frozen=True, slots=True)
class Piece:
    """Kernels that run one after the other, then an exchange, if any; ``beside``: one meanwhile.

    ``ready``: parameters whose gradients of this pass are complete with it. ``mark``: what comes after it.
    ``issued``: operators that the host is busy as long as, beside those of kernels and exchanges.
    """

    name: str
    kernels: tuple[Kernel, ...]
    then: Exchange | None = None
    beside: Exchange | None = None
    ready: tuple[Weight, ...] = ()
    mark: Mark | None = None
    issued: int = 0


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer on one rank.

    Attributes
    ----------
    recompute
        What backward runs again first, because its results were not kept.
    parameters
        Of this rank, by the axes over which their gradients are summed (beside those that the pipeline
        shares): ``{("dp",): n}``; experts may have ``("edp",)``.
    experts
        How many of them are experts', which expert-parallel ranks share.
    weights
        All of them one by one, where the model tells them apart.
    output_bytes
        What the layer after it reads; 0: as much as a pipeline stage sends to the next.
    backward_inputs, backward_weights
        Backward in two passes, where a schedule parts it.
    keeps, most
        Bytes that it keeps of a micro-batch until backward; and the most there is at a time in its backward,
        with gradients: where the model tells.
    """

    name: str
    forward: tuple[Piece, ...]
    backward: tuple[Piece, ...]
    recompute: tuple[Piece, ...] = ()
    parameters: dict[tuple[str, ...], int] = field(default_factory=dict, hash=False)
    experts: int = 0
    weights: tuple[Weight, ...] = ()
    output_bytes: int = 0
    backward_inputs: tuple[Piece, ...] = ()
    backward_weights: tuple[Piece, ...] = ()
    keeps: int = 0
    most: int = 0

    @property
    def num_parameters(self) -> int:
        """All parameters that this rank holds of the layer."""
        return sum(self.parameters.values())


def merged(pieces: Iterable[Piece], *, marks: bool = True) -> list[Piece]:
    """Pieces with no exchange between them made one; its name is that of the first and the last.

    ``marks``: nor a mark; without, nobody needs them.
    """
    whole: list[Piece] = []
    open_: list[Piece] = []
    for piece in pieces:
        if piece.beside is not None and open_:
            whole.append(_join(open_))
            open_ = []
        open_.append(piece)
        if piece.then is not None or piece.beside is not None or (marks and piece.mark is not None):
            whole.append(_join(open_))
            open_ = []
    return [*whole, _join(open_)] if open_ else whole


def _join(pieces: Sequence[Piece]) -> Piece:
    first, last = pieces[0].name, pieces[-1].name
    name = first if first == last else f"{first} to {last}"
    kernels = tuple(kernel for piece in pieces for kernel in piece.kernels)
    issued = sum(piece.issued for piece in pieces)
    return Piece(name, kernels, pieces[-1].then, pieces[-1].beside, mark=pieces[-1].mark, issued=issued)


def overlapped(pieces: Sequence[Piece], carried_on: Sequence[tuple[str, ...]]) -> list[Piece]:
    """Exchanges beside computation, those of ``carried_on`` (collective, axes): a tensor-parallel gather
    beside what reads its result, a scatter beside what made it; an all-to-all beside what comes after it.

    Both go ring step by ring step (Transformer Engine's userbuffers, PyTorch's async tensor parallelism);
    the one step of each that nothing hides isn't modelled. An all-to-all of experts has another micro-batch's
    computation beside it (Megatron-Core's 1F1B overlap), of which as much is left as of this one's.
    """
    made: list[Piece] = []
    carried: Exchange | None = None
    for piece in pieces:
        then, beside = piece.then, piece.beside
        if carried is not None and beside is None and piece.kernels:
            beside, carried = carried, None
        elif carried is not None:  # nothing to hide it
            made.append(Piece(f"{piece.name} gathered", (), carried))
            carried = None
        if then is not None and (then.collective, *then.axes) in carried_on:
            if then.collective != "reduce_scatter":
                carried, then = then, None
            elif beside is None and piece.kernels:
                beside, then = then, None
        made.append(replace(piece, then=then, beside=beside))
    if carried is not None:
        made.append(Piece("gathered", (), carried))
    return made
