"""Search what was made for what it shouldn't have of the traces: names, rare sizes and durations, chains."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cosim.formats.chakra.write_nodes import whole_us
from cosim.synthesis.hide import Step
from cosim.synthesis.learn import steps
from cosim.synthesis.model import TraceModel
from cosim.units import PS_PER_US
from cosim.workload.operation import Operation
from cosim.workload.program import Workload

_Value = tuple[str, int]


@dataclass(frozen=True)
class Finding:
    """Something of the traces: ``what`` it is, the ``value``, and how many operations of them share it."""

    what: str
    value: str
    shared_by: int


def audit(traces: Workload, hide: int, made: Workload | TraceModel) -> list[Finding]:
    """What is in a workload or a model that fewer than ``hide`` operations of the traces share.

    A name is found wherever it is the same. A size is one of communications, a duration one of computations
    in whole microseconds. A chain is of operations one after another, each of one class, size and duration,
    that is longer than a quarter of ``hide``. Equal ranks of the traces count once.
    """
    found: dict[tuple[str, str], Finding] = {}
    for what, value, shared in [*_values_met(traces, hide, made), *_chains_met(traces, hide, made)]:
        found.setdefault((what, value), Finding(what, value, shared))
    return list(found.values())


def _values_met(traces: Workload, hide: int, made: Workload | TraceModel) -> Iterator[tuple[str, str, int]]:
    values: Counter[_Value] = Counter()
    names: Counter[str] = Counter()
    for one in _operations(traces):
        names[one.name] += 1
        values.update(_values(one))
    if isinstance(made, Workload):
        own_names = [one.name for one in _operations(made)]
        own = [value for one in _operations(made) for value in _values(one)]
    else:
        own_names = [kind.name for kind in made.kinds]
        own = [("duration", time // PS_PER_US) for times in made.times_ps for time in times]
        own += [("size", size) for sizes in made.sizes_bytes for size in sizes]
        exact = [role.operations for role in made.roles if role.operations is not None]
        own += [("size", size) for operations in exact for size in operations.size_bytes]
    for name in own_names:
        if name in names:
            yield "name", name, names[name]
    for what, value in own:
        if value and 0 < values[what, value] < hide:
            yield what, f"{value} {'us' if what == 'duration' else 'B'}", values[what, value]


def _chains_met(traces: Workload, hide: int, made: Workload | TraceModel) -> Iterator[tuple[str, str, int]]:
    if isinstance(made, TraceModel):
        return
    chains = Counter(chain for own in steps(traces, hide) for chain in _chains(own, hide))
    for program in made.programs:
        own = [(one.name, one.size_bytes, whole_us(one.duration_ps)) for one in program.operations]
        for chain in _chains(own, hide):
            if 0 < chains[chain] < hide:
                yield "chain", f"{len(chain)} operations from {chain[0][0]}", chains[chain]


def _operations(workload: Workload) -> Iterator[Operation]:
    for program in workload.programs:
        yield from program.operations


def _values(one: Operation) -> list[_Value]:
    found = [("duration", whole_us(one.duration_ps))] if one.duration_ps else []
    return [*found, ("size", one.size_bytes)] if one.size_bytes else found


def _chains(own: Sequence[Step], hide: int) -> Iterator[tuple[Step, ...]]:
    length = hide // 4 + 1
    for at in range(len(own) - length + 1):
        yield tuple(own[at : at + length])
