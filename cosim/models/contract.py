"""What the models that a scenario can name are, and the frameworks that train them.

A model tells, for the settings of a job, the layers of each pipeline stage, how an iteration is done and what
that takes of a GPU's memory: a :class:`~cosim.models.job.ModelJob`. One that every rank has all of needs to
tell its layers only::

    class Mlp(DataParallelModel):
        '''A multi-layer perceptron'''

        sizes: list[int] = Field(description="of its layers")

        def layers(self, batch: int, width: int, parallel: Parallel) -> list[Layer]:
            ...  # kernels forward and backward of each: see cosim.gpu.kernels

        def activation_bytes(self, batch: int, width: int) -> int:
            return batch * sum(self.sizes) * width

A framework says how transformers are trained: which kernels run, what is exchanged when, what is kept.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from cosim.spec import Spec

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cosim.models.catalogue.architecture import TransformerModel
    from cosim.models.catalogue.cut import Attention, Parallel
    from cosim.models.catalogue.workload import ModelWorkload
    from cosim.models.job import ModelJob
    from cosim.models.parts import Layer
    from cosim.workload.program import Program


class Model(Spec):
    """Base of the models that ``workload: {kind: model, model: NAME}`` can name."""

    name: str = Field("custom", description="what reports call it")
    source: str = Field("the scenario", description="where the sizes are from")

    @abstractmethod
    def job(self, workload: ModelWorkload) -> ModelJob:
        """Layers on stages, how an iteration is done, bytes on each GPU; ``workload`` has the settings."""

    def check(self, workload: ModelWorkload) -> None:
        """Refuse settings that don't go with the model.

        Raises
        ------
        ValueError
            Says which, and what would do.
        """

    def about(self) -> str:
        """Its name and size, and where its sizes are from."""
        return ", ".join(text for text in (self.name, self.size, self.source) if text)

    @property
    def size(self) -> str:
        """As ``cosim list model`` says it: ``345 M parameters``."""
        return ""

    @property
    def num_layers(self) -> int:
        """How many, where that is a setting."""
        return 1

    @property
    def tokens(self) -> int:
        """Tokens of a sequence, where the scenario doesn't say; 1 where there are no sequences."""
        return 1

    def forward_flops(self, length: int) -> float | None:  # noqa: ARG002 - for those that know
        """FLOPs of a sample of ``length`` tokens, forward, as utilisation counts them; None: not known."""
        return None

    def is_uneven(self) -> bool:
        """Whether some ranks may have more to do than others, so that ``parallel.imbalance`` matters."""
        return False


class DataParallelModel(Model):
    """Base of models that every rank has all of: trained by data parallelism alone."""

    @abstractmethod
    def layers(self, batch: int, width: int, parallel: Parallel) -> list[Layer]:
        """The layers for ``batch`` samples on one rank, numbers of ``width`` bytes.

        Gradients are summed over ``parallel.gradient_axes``.
        """

    @abstractmethod
    def activation_bytes(self, batch: int, width: int) -> int:
        """What is kept of ``batch`` samples until backward, on one rank."""

    def table_bytes(self, width: int, parallel: Parallel) -> int:  # noqa: ARG002 - for those that have some
        """What ranks share out among each other, on one rank: embedding tables."""
        return 0

    def check(self, workload: ModelWorkload) -> None:
        """Refuse what is for transformers. See :meth:`Model.check`."""
        from cosim.models.catalogue.fits import fits_data_parallel

        fits_data_parallel(workload, self)

    def job(self, workload: ModelWorkload) -> ModelJob:
        """See :meth:`Model.job`."""
        from cosim.models.catalogue.jobs import data_parallel_job

        return data_parallel_job(workload, self)


class Framework(Spec):
    """Base of the frameworks that ``workload: {kind: model, framework: NAME}`` can name."""

    own_attention: ClassVar[Attention] = "flash"
    """Which attention it has where a job says none."""

    @abstractmethod
    def job(self, workload: ModelWorkload, model: TransformerModel) -> ModelJob:
        """Training of a transformer: layers on stages, how an iteration is done, bytes on each GPU."""

    def check(self, workload: ModelWorkload, model: TransformerModel) -> None:
        """Refuse settings that the framework has no way of doing.

        Raises
        ------
        ValueError
            Says which, and what would do.
        """

    def stretch(self, ranks: int, programs: Callable[[], Sequence[Program]]) -> float:  # noqa: ARG002
        """How much longer computation takes because some of so many ranks stand still now and then; of most
        frameworks nothing is known.

        ``programs`` gives the job's, as they are without.
        """
        return 1.0

    def idle_under(self, workload: ModelWorkload) -> list[tuple[str, str]]:  # noqa: ARG002 - some have none
        """(field of the workload, why) of settings that mean nothing to such a job."""
        return []
