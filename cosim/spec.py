"""Specs: everything that a scenario can name is a :class:`Spec`, found by entry point.

A spec is a pydantic model: its fields are the knobs, with units; unknown keys are refused. Its docstring's
first line is what ``cosim list`` shows, its fields' descriptions are what ``cosim list KIND NAME`` shows.
``build`` makes the thing. ``idle_settings`` names settings that were given but can't affect the result.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, model_validator

from cosim.registry import refuse_unknown_keys
from cosim.units import parse_rate, parse_size, parse_time

TimePs = Annotated[int, BeforeValidator(parse_time)]
"""Field type: ``"10us"`` becomes integer picoseconds."""
SizeBytes = Annotated[int, BeforeValidator(parse_size)]
"""Field type: ``"64MiB"`` becomes bytes."""
RateBps = Annotated[float, BeforeValidator(parse_rate)]
"""Field type: ``"100Gbps"`` or ``"50GB/s"`` becomes bits per second."""


class Spec(BaseModel):
    """Base of everything that a scenario can name."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)

    @model_validator(mode="before")
    @classmethod
    def _suggest_for_unknown_keys(cls, data: Any) -> Any:
        if isinstance(data, dict):
            refuse_unknown_keys(cls, data)
        return data

    def idle_settings(self) -> list[tuple[str, str]]:
        """(field, why) for each setting that was given but can't affect the result."""
        return []
