"""What an executor is: it has calls called somewhere and hands on what they give, in any order.

A call is run in a process of its own, which it starts where it is called, and ends when that takes too long
or too much memory; so an executor only has to bring it there. To plug one in::

    class Threads(Executor):
        '''Processes of this machine, a thread for each'''

        threads: int = Field(2, ge=1, description="at a time")

        def run(self, calls: Sequence[RunCall]) -> Iterator[tuple[int, RunResult]]:
            with ThreadPoolExecutor(self.threads) as pool:
                futures = {pool.submit(call): number for number, call in enumerate(calls)}
                for future in as_completed(futures):
                    yield futures[future], future.result()

and name it: ``--executor threads.py:Threads``, ``executor: {plugin: threads.py:Threads, threads: 4}``, or by
an entry point in ``cosim.executors``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field, ValidationError

from cosim.experiment.executors.call import Limits, RunCall, RunResult
from cosim.files.located_yaml import Document, parse_value
from cosim.registry import Named
from cosim.spec import LongPs, SizeBytes, Spec
from cosim.units import PS_PER_S, format_time


class Executor(Spec):
    """Base of the executors that a sweep can name. Fields are settings."""

    timeout: LongPs | None = Field(
        None, gt=0, description="how long (by the wall's clock) a run may take; omitted: as long as it takes"
    )
    memory: SizeBytes | None = Field(
        None, gt=0, description="memory of a run, beyond that of its process before it; omitted: all there is"
    )
    retries: int = Field(
        2, ge=0, description="how often a run is tried again whose process or machine was lost"
    )

    @abstractmethod
    def run(self, calls: Sequence[RunCall]) -> Iterator[tuple[int, RunResult]]:
        """Have each call called, here or elsewhere, and hand on (its number, what it gave) as they come.

        A call can be pickled, and called from any thread of any process that can import cosim. What the
        machinery loses is handed on as ``RunResult.lost_to("why")``: it is called again. The iterator is
        closed when no more is wanted: what still runs ends then.

        Raises
        ------
        SimulationError
            Nothing can be called any more.
        """

    @property
    def limits(self) -> Limits:
        """The limits of each call."""
        seconds = None if self.timeout is None else self.timeout / PS_PER_S
        shown = "" if self.timeout is None else format_time(self.timeout)
        return Limits(seconds, shown, self.memory)


def run_all(
    executor: Executor, function: Callable[[Any], Any], arguments: Sequence[Any]
) -> Generator[tuple[int, RunResult], None, None]:
    """Call a function with each argument; (number, result) as they come. What was lost is tried again.

    Raises
    ------
    Exception
        What the function raised.
    """
    limits = executor.limits
    left = {number: RunCall(function, argument, limits) for number, argument in enumerate(arguments)}
    tries = executor.retries + 1
    while left and tries:
        tries -= 1
        numbers = list(left)
        for at, result in executor.run([left[number] for number in numbers]):
            if result.error is not None:
                raise result.error
            if not (result.is_lost and tries):
                del left[numbers[at]]
                yield numbers[at], result
    for number in left:
        yield number, RunResult.lost_to("the executor gave no answer")


def read_executor(given: Executor | Mapping[str, Any] | str | None) -> Executor | None:
    """The executor that is meant: an object, a mapping, a name, ``NAME://ADDRESS``, or any of them as YAML.

    Raises
    ------
    InputError
        A mistake in it.
    """
    if given is None or isinstance(given, Executor):
        return given
    value: Any = dict(given) if isinstance(given, Mapping) else given
    if isinstance(given, str):
        kind, slashes, address = given.partition("://")
        named = bool(slashes) and kind.isidentifier()
        value = {"kind": kind, "address": address} if named else parse_value(given)
    document = Document("executor", {"executor": value})
    try:
        return _ExecutorGiven.model_validate(document.value).executor
    except ValidationError as error:
        from cosim.experiment.mistakes import scenario_error

        raise scenario_error(error, _ExecutorGiven, document) from None


class _ExecutorGiven(Spec):
    """An executor that was given beside a sweep"""

    executor: Annotated[Executor, Named("cosim.executors")]
