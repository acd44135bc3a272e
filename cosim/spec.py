"""Specs: everything that a scenario can name is a :class:`Spec`, found by entry point.

A spec is a pydantic model: its fields are the knobs, with units; unknown keys are refused. Its docstring's
first line is what ``cosim list`` shows, its fields' descriptions are what ``cosim list KIND NAME`` shows.
``build`` makes the thing. ``idle_settings`` names settings that were given but can't affect the result.
What a spec of each kind has besides is its room's contract: ``contract.py``.
"""

from __future__ import annotations

from types import UnionType
from typing import Annotated, Any, ClassVar, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, model_validator
from pydantic.fields import FieldInfo

from cosim.registry import located, refuse_unknown_keys
from cosim.units import parse_rate, parse_size, parse_span, parse_time

TimePs = Annotated[int, BeforeValidator(parse_time)]
"""Field type: ``"10us"`` becomes integer picoseconds."""
LongPs = Annotated[int, BeforeValidator(parse_span)]
"""Field type: the same, also where it is longer than simulated time can be: ``"54d"``."""
SizeBytes = Annotated[int, BeforeValidator(parse_size)]
"""Field type: ``"64MiB"`` becomes bytes."""
RateBps = Annotated[float, BeforeValidator(parse_rate)]
"""Field type: ``"100Gbps"`` or ``"50GB/s"`` becomes bits per second."""


def _is_number(field: FieldInfo | None) -> bool:
    annotation = None if field is None else field.annotation
    options = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    return int in options or float in options


class Spec(BaseModel):
    """Base of everything that a scenario can name."""

    declared_inputs: ClassVar[tuple[str, ...] | None] = None
    """What a plug-in reads without Python's ``open``: paths relative to its file. Its author vouches for it,
    and its runs are stored. None: cosim looks through its source.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)

    @model_validator(mode="before")
    @classmethod
    def _refuse_what_pydantic_takes(cls, data: Any) -> Any:
        if isinstance(data, dict):
            refuse_unknown_keys(cls, data)
            # pydantic takes true for 1
            numbers = [
                ((key,), f"{str(value).lower()} is not a number", value)
                for key, value in data.items()
                if isinstance(value, bool) and _is_number(cls.model_fields.get(key))
            ]
            if numbers:
                raise located(cls.__name__, numbers)
        return data

    def idle_settings(self) -> list[tuple[str, str]]:
        """(field, why) for each setting that was given but can't affect the result."""
        return []

    def uses_seed(self) -> bool:
        """Whether the scenario's seed changes what this makes or chooses."""
        return False

    def about(self) -> str:
        """What a ready-made one is, for ``cosim list``: its class's text, where it has none of its own."""
        return type(self).__doc__ or ""

    @classmethod
    def lacks(cls) -> list[str]:
        """What a class has yet to say, beside its abstract methods, before a scenario can name it."""
        return []
