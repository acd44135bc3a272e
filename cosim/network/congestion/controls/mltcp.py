"""MLTCP: any control, its growth scaled by how much of its iteration a job has sent.

What the control underneath adds to a window or a rate (outside slow start) is multiplied by F(r) = slope r +
intercept, r being the share of its iteration's bytes that the job has sent. A job that is further on gets
more, so jobs that compete slide apart until they don't, if their communication fits side by side.

What is multiplied: additive increases of NewReno, DCTCP, Swift, TIMELY and HPCC (of HPCC w_ai alone, not the
part that follows utilisation, which would undo it); of CUBIC its growth, that of its Reno-friendly estimate
too, which decides at data centres' round-trip times; of DCQCN all recovery: with its R_AI alone, jobs stay
together, as those that come back from silence start at line rate with a small alpha. A class that multiplies
by itself says ``scales_itself`` and reads ``c.gain``.

When it works: shares follow F within the time in which the control settles: milliseconds (tens of them for
NewReno), so communication has to be some times as long, as it is in the paper's jobs of a second, or jobs
need more than twenty iterations. Never over Swift with its flow scaling, which gives smaller windows a larger
target and so evens out what F sets apart (``fs_range: 0us``), nor over fixed windows.

Source: S. Rajasekaran et al., "MLTCP: Congestion Control for DNN Training", arXiv:2402.09589; "MLTCP: A
Distributed Technique to Approximate Centralized Flow Scheduling For Machine Learning", HotNets 2024,
doi:10.1145/3696348.3696878. Defaults are theirs: F(r) = 1.75 r + 0.25. Jobs' iteration bytes are known, not
learned from gaps between acknowledgements.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from cosim.network.congestion.contract import Control
from cosim.registry import Named


class Mltcp(Control):
    """MLTCP (2024) over any control: growth scaled by the share of the iteration sent"""

    over: Annotated[Control, Named("cosim.controls")] = Field(
        description="the control whose growth is scaled"
    )
    slope: float = Field(1.75, description="of F(r)")
    intercept: float = Field(0.25, description="F(0)")

    @model_validator(mode="after")
    def _grows(self) -> Mltcp:
        if min(self.intercept, self.intercept + self.slope) <= 0:
            raise ValueError("F(r) = slope r + intercept has to be above 0 for r from 0 to 1")
        if isinstance(self.over, Mltcp):
            raise ValueError("MLTCP goes over a control that sets windows or rates, not over MLTCP")
        return self

    def inner(self) -> Control:
        """The control underneath."""
        return self.over.inner()

    def scaling(self) -> tuple[float, float]:
        """F, as (slope, intercept)."""
        return self.slope, self.intercept
