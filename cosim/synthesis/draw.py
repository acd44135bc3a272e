"""A workload from a model: so many ranks, drawn with a seed, scaled.

Rank r of copy c of the traces' ranks does what rank r did. Groups that grow take the same ranks of all
copies; the others are there once in each copy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosim.errors import InputError
from cosim.files.import_report import ReportBuilder
from cosim.synthesis.draw_hidden import drawn_operations, talk_sizes
from cosim.synthesis.model import RankOperations, Role, TraceModel
from cosim.synthesis.repeat import repeated, stretched
from cosim.units import LARGEST
from cosim.workload.by_rank import rank_workload
from cosim.workload.check import check
from cosim.workload.operation import Operation, OpKind, Peer
from cosim.workload.program import Workload

I64 = NDArray[np.int64]
_DRAWINGS = 32


@dataclass(frozen=True)
class Scale:
    """What is multiplied: the repetitions of blocks, and the bytes of collectives and messages."""

    layers: float = 1.0
    bytes: float = 1.0


def read_scale(text: str) -> Scale:
    """``layers=2,bytes=1.5``.

    Raises
    ------
    InputError
        Another name, or no number above 0.
    """
    found: dict[str, float] = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        try:
            number = float(value)
            if name not in ("layers", "bytes") or not 0 < number < 1e6:
                raise ValueError
        except ValueError:
            raise InputError(
                f"--scale {part!r}", hint="write layers=2, bytes=1.5, or both: layers=2,bytes=1.5"
            ) from None
        found[name] = number
    return Scale(**found)


def synthesise(
    model: TraceModel, *, ranks: int | None = None, seed: int = 0, scale: Scale = Scale()
) -> Workload:
    """Draw a workload.

    Parameters
    ----------
    model
        That was learned.
    ranks
        How many; omitted: as many as the traces have.
    seed
        Of what is drawn.
    scale
        What is multiplied.

    Raises
    ------
    InputError
        A number of ranks that the traces' groups don't fit in, or layers where no block repeats.
    """
    ranks = model.ranks if ranks is None else ranks
    _check_ranks(model, ranks)
    if scale.layers != 1 and not any(_has_blocks(role) for role in model.roles):
        raise InputError("no block of the traces repeats: no layers to multiply", hint="leave layers= out")
    share = _share_in_blocks(model) * (scale.layers - 1) + 1
    model = stretched(model, scale.layers)
    drawn = _drawn(model, seed, scale, share)
    role_of = {rank: number for number, role in enumerate(model.roles) for rank in role.ranks}
    times: dict[tuple[int, int], list[int]] = {}
    operations = []
    for rank in range(ranks):
        number = role_of[rank % model.ranks]
        key = number, (0 if model.roles[number].alike else 1 + rank)
        if key not in times:
            times[key] = _times(model, number, drawn[number], np.random.default_rng([seed, 1, *key]))
        maker = _RankMaker(model, rank, ranks, share, scale.bytes)
        operations.append(maker.operations(drawn[number], times[key]))
    workload = rank_workload("synthetic", operations, ReportBuilder())
    check(workload)
    return workload


def _drawn(model: TraceModel, seed: int, scale: Scale, share: float) -> list[RankOperations]:
    """Operations of each role."""
    sizes = talk_sizes(model, seed, share)
    found = []
    for number, role in enumerate(model.roles):
        if role.hidden is not None:
            random = np.random.default_rng([seed, 2, number])
            found.append(drawn_operations(model, role.hidden, sizes, random))
        else:
            assert role.operations is not None
            found.append(repeated(role.operations, scale.layers))
    return found


def _times(model: TraceModel, number: int, own: RankOperations, random: np.random.Generator) -> list[int]:
    """Durations: each list's values in equal shares, in a random order. Where a role's sums are known, of
    several drawings the one that is nearest to them.
    """
    used = np.array(own.times)
    hidden = model.roles[number].hidden
    times = np.zeros(len(used), np.int64)
    if hidden is None:
        times[used >= 0] = _drawn_times(model, used[used >= 0], random)
        return [int(one) for one in times]
    streams = np.array([model.kinds[kind].stream for kind in own.kind])
    for stream, total in hidden.totals_ps.items():
        places = np.flatnonzero((streams == stream) & (used >= 0))
        tried = [_drawn_times(model, used[places], random) for _ in range(_DRAWINGS)]
        times[places] = min(tried, key=lambda one: abs(int(one.sum()) - total))
    return [int(one) for one in times]


def _drawn_times(model: TraceModel, used: I64, random: np.random.Generator) -> I64:
    times = np.zeros(len(used), np.int64)
    for number in np.unique(used).tolist():
        places = np.flatnonzero(used == number)
        values = np.array(model.times_ps[number])
        share = (random.permutation(len(places)) + random.random(len(places))) / len(places)
        times[places] = values[np.minimum((share * len(values)).astype(np.int64), len(values) - 1)]
    return times


def _check_ranks(model: TraceModel, ranks: int) -> None:
    if ranks < 1:
        raise InputError(f"{ranks} ranks")
    if ranks % model.ranks == 0:
        return
    alone = all(len(group) == model.ranks for family in model.families for group in family.groups)
    talks = any(kind.kind in ("send", "recv") for kind in model.kinds)
    if talks or not alone:
        raise InputError(
            f"{ranks} ranks: the traces have {model.ranks}, with groups or messages that need them all",
            hint=f"give a multiple: {model.ranks * max(ranks // model.ranks, 1)}",
        )


def _has_blocks(role: Role) -> bool:
    if role.operations is not None:
        return bool(role.operations.blocks)
    assert role.hidden is not None
    return any(repeats for band in role.hidden.bands for _, _, repeats in band.kinds)


def _share_in_blocks(model: TraceModel) -> float:
    """The share of all computation that lies in repeated blocks."""
    means = [sum(values) / len(values) for values in model.times_ps]
    inside = total = 0.0
    for role in model.roles:
        if role.hidden is not None:
            dealt = [one for band in role.hidden.bands for one in band.kinds]
            used = [(kind, kind, count, repeats) for kind, count, repeats in dealt]
        else:
            assert role.operations is not None
            own = role.operations
            columns = zip(own.kind, own.times, own.repeats(), strict=True)
            used = [(kind, times, 1, int(repeats)) for kind, times, repeats in columns if times >= 0]
        for kind, times, count, repeats in used:
            if model.kinds[kind].stream != "cpu":
                total += means[times] * count
                inside += means[times] * repeats
    return inside / total if total else 0.0


class _RankMaker:
    """Makes the operations of one rank."""

    def __init__(self, model: TraceModel, rank: int, ranks: int, share: float, times_bytes: float) -> None:
        self._model, self._rank, self._ranks = model, rank, ranks
        self._share, self._bytes = share, times_bytes
        self._groups: dict[int, tuple[int, ...]] = {}

    def operations(self, own: RankOperations, times: list[int]) -> tuple[Operation, ...]:
        made = []
        for at, number in enumerate(own.kind):
            kind = self._model.kinds[number]
            factor = self._share if kind.all_layers else 1.0
            size = own.size_bytes[at] * factor * (self._bytes if kind.kind != "memory" else 1)
            made.append(
                Operation(
                    kind.name,
                    OpKind(kind.kind),
                    kind.stream,
                    tuple(sorted(at - far for far in own.back[at])),
                    duration_ps=times[at] if factor == 1 else round(times[at] * factor),
                    collective=kind.collective,
                    ranks=self._group(kind.family) if kind.kind == "collective" else None,
                    size_bytes=min(round(size), LARGEST),
                    root=own.root[at],
                    peer=Peer(self._rank + own.peer[at]) if own.peer[at] else None,
                    tag=own.tag[at],
                    access=kind.access,
                )
            )
        return tuple(made)

    def _group(self, number: int) -> tuple[int, ...] | None:
        """The rank's group; None: all ranks."""
        if number not in self._groups:
            family, every = self._model.families[number], self._model.ranks
            copy, mine = divmod(self._rank, every)
            group = next(group for group in family.groups if mine in group)
            copies = range(-(-self._ranks // every)) if family.grows else [copy]
            found = (other * every + rank for other in copies for rank in group)
            self._groups[number] = tuple(rank for rank in found if rank < self._ranks)
        ranks = self._groups[number]
        return None if ranks == tuple(range(self._ranks)) else ranks
