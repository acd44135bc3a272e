"""Settings of workloads that can train so: averages of weights now and then (``local_sgd``; S. Stich, ICLR
2019), and gradients of the first layers that may be late (``{first: n}``; SAPipe, NeurIPS 2022).
"""

from __future__ import annotations

from pydantic import Field, NonNegativeInt, PositiveInt

from cosim.spec import Spec


class LocalSgd(Spec):
    """Weights that are averaged now and then."""

    steps: PositiveInt = Field(le=10_000, description="minibatches of each worker between two averages")
    late: bool = Field(False, description="an average is used one period late, and hides behind it")


class FirstLayers(Spec):
    """The first layers of a model."""

    first: NonNegativeInt = Field(description="so many")
