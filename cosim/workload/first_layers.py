"""The setting ``{first: n}`` of workloads some of whose gradients may be late (SAPipe, NeurIPS 2022)."""

from __future__ import annotations

from pydantic import Field, NonNegativeInt

from cosim.spec import Spec


class FirstLayers(Spec):
    """The first layers of a model."""

    first: NonNegativeInt = Field(description="so many")
