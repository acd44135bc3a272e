"""WHEN: the replay, closed-loop, on SimPy's clock with a network beside it, and the records it writes.

==================  ==========================================================================
``replay``          the run: ranks, programs, instants; ``replay(...)`` is the front door
``environment``     the SimPy environment that shares its time with a network
``programs``        programs made ready to run, process groups
``rank``            what a rank may start, and what it has under way
``meeting``         a collective operation, from its first rank's arrival to its last one's end
``collective``      chunks, phases and queues of a collective under way
``messages``        sends and receives
``desk``            opens flow groups, starts flows, tells who waits for them
``ledger``, ``fold``  counters of what completes: digest, FCT, traffic, messages
``stall``           who waits for whom
``records``         what is written down
==================  ==========================================================================
"""
