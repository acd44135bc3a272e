"""Checks for servers of the protocol, and for networks that might be served. No test framework needed.

>>> from cosim.testing.conformance import check_network_simulator
>>> print(check_network_simulator("unix:/tmp/simulator"))  # doctest: +SKIP

=============  ==================================================================
``kit``        runs the checks against an address, a command or a network
``probe``      a bare session, which believes everything that a server says
``worlds``     the topologies and flows that checks use
``rules``      handshake, sequence, limits, causality, cancel, budget ...
``times``      line rate, latency, shares, order, instants, lookahead, dependents
``sameness``   determinism, cuts, kill and replay
``faulty``     a server with one switch for each fault
=============  ==================================================================
"""

from cosim.testing.conformance.kit import Report, Result, check_network_simulator

__all__ = ["Report", "Result", "check_network_simulator"]
