"""What a study is: it asks for runs of a scenario, in one or more rounds, and says what it found.

A study runs nothing itself: its runs come from the store where they are there, and else go to the executor.
To plug one in::

    class TwiceTheRate(Study):
        '''How much faster an iteration is on links of twice the rate'''

        setting: str = Field("topology.rate", description="the rate")
        twice: str = Field(description="twice of it")

        def ask(self, scenario: Scenario) -> StudyRounds:
            faster = scenario.with_settings({self.setting: self.twice})
            now, then = yield [StudyRun("as it is", scenario), StudyRun("twice the rate", faster)]
            return StudyTable([["iteration now", "then"], [str(now.end_ps), str(then.end_ps)]])

and name it: ``cosim study study.py:TwiceTheRate scenario.yaml --with twice=200Gbps``,
``cosim.study({"plugin": "study.py:TwiceTheRate", "twice": "200Gbps"}, scenario)``, or by an entry point in
``cosim.studies``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cosim.results.study import StudyResult
from cosim.spec import Spec

if TYPE_CHECKING:
    from cosim.experiment.scenario import Scenario


@dataclass(frozen=True)
class StudyRun:
    """A run that a study needs.

    Attributes
    ----------
    label
        What it is called in progress and errors.
    scenario
        What is run.
    job
        Only the job of this number, by itself and from the start; None: all jobs.
    read
        A function at the top of a module: what is read of the run, with all of its messages, as plain values.
        It is called with a :class:`cosim.Run` and ``arguments``, where the run is run. None: its summary.
    arguments
        Plain values, or scenarios.
    """

    label: str
    scenario: Scenario
    job: int | None = None
    read: Callable[..., Any] | None = None
    arguments: tuple[Any, ...] = ()


StudyRounds = Generator[Sequence[StudyRun], Sequence[Any], StudyResult]
"""Yields runs, is sent what each gave, in the same order, and returns what was found. A run gives its
:class:`cosim.Summary`, or what ``read`` gave; None where an interrupt left it out.
"""


class Study(Spec):
    """Base of studies. Fields are settings; the docstring's first line is what ``cosim list study`` shows."""

    @abstractmethod
    def ask(self, scenario: Scenario) -> StudyRounds:
        """Yield the runs that are needed, round by round, and return what they say.

        Raises
        ------
        InputError
            It can't be asked of this scenario.
        """
