"""Hypothesis strategies of worlds: topologies, traffic with dependencies, jobs that run on them.

For tests that hold a network, a routing or the engine to a property, whatever it is given. Sizes, rates,
latencies and times come from small sets: ties are the rule rather than the exception, for there models break.

>>> from hypothesis import given, settings
>>> from cosim.network.fair_share import FairShareNetwork
>>> from cosim.testing import Recorder, strategies
>>> @settings(max_examples=5, deadline=None)
... @given(strategies.traffic())
... def test_a_recorder_changes_nothing(traffic):
...     assert traffic.run(Recorder(FairShareNetwork())) == traffic.run(FairShareNetwork())
>>> test_a_recorder_changes_nothing()

===============  ===============================================================================
``topologies``   a few endpoints and switches, any of which reaches any other
``tables``       flow tables with dependencies, whose rows repeat
``traffic``      :class:`Traffic`: a topology, groups of flows on it, and when they start
``workloads``    programs of ranks that can end: computations, collectives, messages
``fabrics``      8 endpoints, as a scenario names them: ring, switch, leaf-spine, hosts, grid
``job_mixes``    :class:`JobMix`: jobs on a fabric, with algorithms for their collectives
===============  ===============================================================================

Raises
------
InputError
    On import, where hypothesis is not installed.
"""

from cosim.errors import InputError

try:
    import hypothesis
except ImportError:
    raise InputError("cosim.testing.strategies needs hypothesis", hint="pip install hypothesis") from None

del hypothesis

from cosim.testing.strategies.jobs import JobMix, fabrics, job_mixes, workloads  # noqa: E402 - said in one line
from cosim.testing.strategies.traffic import Traffic, tables, topologies, traffic  # noqa: E402

__all__ = ["JobMix", "Traffic", "fabrics", "job_mixes", "tables", "topologies", "traffic", "workloads"]
