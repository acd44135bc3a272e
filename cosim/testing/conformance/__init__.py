"""The rules of the seam and of the protocol, each a named check. No test framework needed.

>>> from cosim.network.fair_share import FairShareNetwork
>>> from cosim.testing import check_network
>>> print(check_network(FairShareNetwork, only=["latency", "shares"]))
conformance of fair_share
  passed  latency  a small message takes the latencies of its links, at least
  passed  shares   three messages on one link take as long as their bytes together
2 passed, 0 failed, 0 skipped

==================  ======================================================================
``report``          results of checks; how a check fails, or is skipped
``kit``             the registry of checks; what a check may use
``network``         :func:`check_network`: a network of this process, called directly
``server``          :func:`check_server`: a server of the protocol, by its address or command
``cases``           the topologies and flows that checks use
``rules``           causality, time, grants, ids, statistics ...: of both
``times``           line rate, latency, shares, order, instants, lookahead, dependents: of both
``sameness``        determinism, cuts, replay: of both
``network_rules``   states, groups, what isn't claimed: of a network of this process
``server_rules``    handshake, states, sequence, limits, cancel, budget ...: of a server
``faulty_network``  a network with one switch for each fault
``faulty_server``   a server with one switch for each fault
``link_rules``      checks of links that fail, slow down and come back
``refusals``        checks that a server refuses what it can't do exactly, rather than take it for something
                    else
``samples``         checks of what a network shows at an instant: queues of links, connections that send
==================  ======================================================================
"""

from cosim.testing.conformance.network import check_network
from cosim.testing.conformance.report import ConformanceError, Report, Result
from cosim.testing.conformance.server import check_server

__all__ = ["ConformanceError", "Report", "Result", "check_network", "check_server"]
