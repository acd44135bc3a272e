"""For tests of networks, and of what is built on them.

===============  ====================================================================
``faulty``       :class:`FaultyNetwork`: a network whose chosen completions come late
``recorder``     :class:`Recorder` and :class:`Player`: what a network was asked and answered, and again
``conformance``  the rules of the seam and of the protocol, each a named check
===============  ====================================================================
"""

from cosim.testing.conformance import ConformanceError, Report, Result, check_network, check_server
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
]
