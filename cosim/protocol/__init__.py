"""Network simulators elsewhere: the seam of :mod:`cosim.network.simulator` over gRPC.

================  ==========================================================================
``client``        :class:`~cosim.protocol.client.RemoteNetwork`, a session behind the seam
``catalogue``     groups in flight as columns; ``injector`` numbers flows and checks answers,
                  ``window`` keeps large groups within what a server holds
``lifeline``      log, restart, replay; ``journal`` is the log's file, ``bulk`` a log as few calls
``wire``          bytes, deadlines, errors; ``launcher`` starts servers
``settings``      what is asked of a simulator, and how patient one is; ``remote``: in a scenario
``adapters``      simulators that come with cosim, built where they are used
``server``        serves any network of this process: ``session``, ``host``, ``dependents``
``columns``       flows as columns; ``messages`` as messages that fit; ``world`` topologies
``digest``        the digest of a session; ``refusal``: errors on the wire; ``address``
``v1``            the generated messages
================  ==========================================================================
"""
