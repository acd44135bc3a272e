"""What the models that a scenario can name are, and the frameworks that train them."""

from __future__ import annotations

from cosim.spec import Spec


class Model(Spec):
    """Base of the models that ``workload: {kind: model, model: NAME}`` can name."""


class Framework(Spec):
    """Base of the frameworks that ``workload: {kind: model, framework: NAME}`` can name."""
