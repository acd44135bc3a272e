"""What a GPU of a scenario is: a spec that gives a :class:`~cosim.gpu.gpus.Gpu`, peaks and efficiencies.

A GPU of your own is a ``Gpu`` with other numbers, as a rule, at the end of an entry point::

    MINE = Gpu(name="mine", peak_flops={"bf16": 500e12}, memory_rate="2TB/s", source="its data sheet")

or a class, where the numbers are computed or read from a file.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from cosim.context import Context
from cosim.spec import Spec

if TYPE_CHECKING:
    from cosim.gpu.gpus import Gpu


class GpuSpec(Spec):
    """Base of the GPUs that a scenario can name."""

    @abstractmethod
    def build(self, context: Context) -> Gpu:
        """Its numbers; relative files start from ``context.base``.

        Raises
        ------
        WorkloadError
            A file that is missing, or says something else.
        """
