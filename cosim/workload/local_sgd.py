"""The setting ``local_sgd`` of every workload that can train so (S. Stich, ICLR 2019)."""

from __future__ import annotations

from pydantic import Field, PositiveInt

from cosim.spec import Spec


class LocalSgd(Spec):
    """Weights that are averaged now and then."""

    steps: PositiveInt = Field(le=10_000, description="minibatches of each worker between two averages")
    late: bool = Field(False, description="an average is used one period late, and hides behind it")
