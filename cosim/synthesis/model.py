"""What is kept of a job's traces: a JSON file that ``cosim learn`` writes and ``cosim synthesise`` reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from cosim.errors import InputError, Location
from cosim.files.text import write_text

_MOST = 1 << 62


class _ModelData(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Kind(_ModelData):
    """What operations of one name are: ``kind`` and ``collective`` as :class:`cosim.Operation` has them.

    ``family`` is the number of a collective's groups in :attr:`TraceModel.families`, else -1. ``all_layers``
    says that one such operation stands for all repeated blocks, as an optimizer's step does.
    """

    name: str
    kind: Literal["compute", "memory", "collective", "send", "recv"]
    stream: str
    collective: str = ""
    family: int = -1
    access: str = ""
    all_layers: bool = False


class Family(_ModelData):
    """Groups of one shape, none with a rank of another. ``grows``: with more ranks a group gets larger,
    instead of there being more such groups.
    """

    groups: list[list[int]]
    grows: bool


class RankOperations(_ModelData):
    """A rank's operations in an order in which each waits for earlier ones only; lists are as long.

    ``alike`` is equal where names differ in numbers only; ``times`` the number of a list in
    :attr:`TraceModel.times_ps`, -1 where there is none; ``back`` how far back the operations lie that each
    waits for; ``peer`` how many ranks further the other end is, 0 for none. ``blocks`` are the places where
    repetitions begin, with the end of the last one: one list for each row of equal blocks.
    """

    kind: list[int]
    alike: list[int]
    times: list[int]
    size_bytes: list[int]
    back: list[list[int]]
    peer: list[int]
    tag: list[int]
    root: list[int]
    blocks: list[list[int]]

    def repeats(self) -> list[bool]:
        """Whether each operation lies in a row of blocks."""
        inside = [False] * len(self.kind)
        for row in self.blocks:
            inside[row[0] : row[-1]] = [True] * (row[-1] - row[0])
        return inside


class Band(_ModelData):
    """Neighbouring levels of a hidden rank, and (kind, operations, those in repeated blocks) of what computes
    there.

    An operation's level is the longest chain that it ends; it waits for one that is a level lower.
    """

    levels: int
    kinds: list[tuple[int, int, int]]


class Talk(_ModelData):
    """A collective, send, receive or memory access of a hidden rank. ``peer`` is as in
    :class:`RankOperations`, ``level`` its own, ``waited`` that of the first computation that waits for it, -1
    for none. ``repeats`` says that it lies in a repeated block, ``all_layers`` is as in :class:`Kind`.
    """

    kind: int
    peer: int
    tag: int
    root: int
    level: int
    waited: int
    repeats: bool
    all_layers: bool


class Hidden(_ModelData):
    """A rank's operations as numbers of them, and what it communicates, in order. ``totals_ps`` are all its
    durations on each stream, in two digits.
    """

    totals_ps: dict[str, int]
    bands: list[Band]
    talks: list[Talk]


class Role(_ModelData):
    """Ranks that do the same. ``alike``: in the same times, too."""

    ranks: list[int]
    alike: bool
    operations: RankOperations | None = None
    hidden: Hidden | None = None


class TraceModel(_ModelData):
    """What is kept of a job's traces.

    Attributes
    ----------
    hide
        The least number of operations that share what is kept; 1: nothing is hidden.
    ranks
        Of the traces.
    times_ps, sizes_bytes
        Durations (of operations that are alike) and sizes (hidden: of a kind), ascending.
    follows
        Hidden: ``follows[a][b]`` pairs as (a, b, times): an operation of kind b waits for one of kind a.
    waits
        Hidden: how many operations one of each kind waits for, mean.
    """

    format: Literal["cosim trace model 1"] = "cosim trace model 1"
    hide: int
    ranks: int
    families: list[Family]
    kinds: list[Kind]
    times_ps: list[list[int]]
    sizes_bytes: list[list[int]] = []
    follows: list[tuple[int, int, int]] = []
    waits: list[float] = []
    roles: list[Role]

    @model_validator(mode="after")
    def _numbers_are_there(self) -> TraceModel:
        kinds, times = len(self.kinds), len(self.times_ps)
        if self.ranks < 1 or sorted(rank for role in self.roles for rank in role.ranks) != [
            *range(self.ranks)
        ]:
            raise ValueError("each of the ranks should have one role")
        if any(not -1 <= kind.family < len(self.families) for kind in self.kinds):
            raise ValueError("a kind's family isn't there")
        if any(
            not values or values != sorted(values) or values[0] < 0 or values[-1] > _MOST
            for values in self.times_ps + self.sizes_bytes
        ):
            raise ValueError(
                "times_ps and sizes_bytes have ascending lists of whole numbers from 0 on, none empty"
            )
        if self.hide > 1 and not len(self.sizes_bytes) == times == kinds == len(self.waits):
            raise ValueError("a hidden model has times, sizes and waits of each kind")
        if any(not (0 <= a < kinds and 0 <= b < kinds and n > 0) for a, b, n in self.follows):
            raise ValueError("follows has pairs of kinds, and how often")
        for role in self.roles:
            self._check(role, kinds, times)
        return self

    def _check(self, role: Role, kinds: int, times: int) -> None:
        own, hidden = role.operations, role.hidden
        if (own is None) == (hidden is None) or (hidden is None) == (self.hide > 1):
            raise ValueError("a role has operations, or, where the model hides, bands")
        if hidden is not None:
            dealt = [one for band in hidden.bands for one in band.kinds]
            numbers = [kind for kind, _, _ in dealt] + [one.kind for one in hidden.talks]
            if any(not 0 <= kind < kinds for kind in numbers) or any(
                not 0 <= repeats <= count < 1 << 24 or not count for _, count, repeats in dealt
            ):
                raise ValueError("a band's kind or number of operations is wrong")
            depth = sum(band.levels for band in hidden.bands)
            if any(band.levels < 1 for band in hidden.bands) or depth > 1 << 24:
                raise ValueError("a band has no levels, or too many")
            if any(not 0 <= one.level < depth or not -1 <= one.waited < depth for one in hidden.talks):
                raise ValueError("a talk's level isn't there")
        if own is not None:
            count = len(own.kind)
            columns = (own.alike, own.times, own.size_bytes, own.back, own.peer, own.tag, own.root)
            if any(len(column) != count for column in columns) or not count:
                raise ValueError("columns of operations should have one length, at least 1")
            if any(not 0 <= kind < kinds for kind in own.kind) or any(
                not -1 <= one < times for one in own.times
            ):
                raise ValueError("the number of a kind or of times is wrong")
            if any(not 0 < far <= at for at, back in enumerate(own.back) for far in back):
                raise ValueError("an operation waits for one that isn't before it")
            flat = [at for row in own.blocks for at in row]
            if (
                flat != sorted(flat)
                or any(not 0 <= at <= count for at in flat)
                or any(len(b) < 3 for b in own.blocks)
            ):
                raise ValueError("blocks begin one after another")
            if any(not 0 <= size <= _MOST for size in own.size_bytes):
                raise ValueError("a size is wrong")


def write_model(model: TraceModel, path: Path) -> None:
    """Write a model's file.

    Raises
    ------
    InputError
        It can't be written there.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(error.strerror or str(error), location=Location(str(path))) from error
    write_text(path, model.model_dump_json() + "\n")


def read_model(path: Path) -> TraceModel:
    """Read a model's file.

    Raises
    ------
    InputError
        It isn't there, is cut, or is no such model; says where.
    """
    place = Location(str(path))
    try:
        return TraceModel.model_validate(json.loads(path.read_text(encoding="utf-8")), strict=False)
    except OSError as error:
        raise InputError(error.strerror or str(error), location=place) from error
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        raise InputError(
            f"no model of traces: {first['msg']}",
            location=Location(str(path), key=key or None),
            hint="give what `cosim learn -o` wrote",
        ) from error
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None)
        raise InputError(
            f"not JSON: {error}",
            location=Location(str(path), line),
            hint="give what `cosim learn -o` wrote, whole",
        ) from error
