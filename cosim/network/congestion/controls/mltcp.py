"""MLTCP: any control, its growth scaled by how much of its iteration a job has sent.

Whatever the control underneath adds to a window or a rate (outside slow start) is multiplied by F(r) = slope
r + intercept, r being the share of its iteration's bytes that the job has sent. A job that is further on gets
more, so jobs that compete slide apart until they don't, if their communication fits side by side.

Source: S. Rajasekaran et al., "MLTCP: Congestion Control for DNN Training", arXiv:2402.09589. Defaults are
theirs: F(r) = 1.75 r + 0.25. Jobs' iteration bytes are known, not learned.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field, model_validator

from cosim.network.congestion.control import Control
from cosim.network.congestion.plugin import plugged_in
from cosim.registry import Named


class Mltcp(Control):
    """MLTCP (2024) over any control: growth scaled by the share of the iteration sent"""

    wraps: ClassVar[bool] = True

    over: Annotated[Any, Named("cosim.controls", also=(Control,)), BeforeValidator(plugged_in)] = Field(
        description="the control whose growth is scaled"
    )
    slope: float = Field(1.75, description="of F(r)")
    intercept: float = Field(0.25, description="F(0)")

    @model_validator(mode="after")
    def _grows(self) -> Mltcp:
        if min(self.intercept, self.intercept + self.slope) <= 0:
            raise ValueError("F(r) = slope r + intercept has to be above 0 for r from 0 to 1")
        return self

    def inner(self) -> Control:
        """The control underneath."""
        found: Control = self.over.inner()
        return found

    def load(self, base: Path) -> Control:
        """MLTCP over what a plug-in's file has."""
        return self.model_copy(update={"over": self.over.load(base)})

    def scaling(self) -> tuple[float, float]:
        """F, as (slope, intercept)."""
        return self.slope, self.intercept
