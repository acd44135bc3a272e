"""For tests of networks, and of what is built on them.

A network of your own is held to every rule of the seam by one line of a test:

>>> from cosim.network.fair_share import FairShareNetwork
>>> from cosim.testing import check_network
>>> check_network(FairShareNetwork).passed
True

===============  ====================================================================
``conformance``  :func:`check_network`, :func:`check_server`: each rule a named check; their topologies
``faulty``       :class:`FaultyNetwork`: a network whose chosen completions come late
``recorder``     :class:`Recorder` and :class:`Player`: what a network was asked and answered, and again
``strategies``   random topologies, traffic and jobs, for hypothesis; imported by itself
===============  ====================================================================
"""

from cosim.testing.conformance import ConformanceError, Report, Result, check_network, check_server
from cosim.testing.conformance.cases import star, two_hosts
from cosim.testing.faulty import FaultyNetwork
from cosim.testing.recorder import Player, Recorder, Recording

__all__ = [
    "ConformanceError",
    "FaultyNetwork",
    "Player",
    "Recorder",
    "Recording",
    "Report",
    "Result",
    "check_network",
    "check_server",
    "star",
    "two_hosts",
]
