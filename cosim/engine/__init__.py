"""WHEN: the replay, closed-loop, on SimPy's clock with a network beside it, and the records it writes.

=======================  =====================================================================
``replay``               the run: the front door, and what joins engine, network and SimPy
``given_ahead``          a run of flows that start at given times: all of them at once
``timed_flows``          these flows as columns, and as a workload; ``progress``: how far a run is
``environment``          the SimPy environment that shares its time with a network
``engine``               jobs in columns; answers what the compiled loop stops for
``programs``, ``plans``  programs made ready to run, process groups, the plans of collectives
``tables``, ``groups``   these as rows of the columns, the former before a run, the latter when met
``columns``, ``state``   the arrays that grow, and what their rows are
``loop``                 compiled: instants, rounds of all that ends and all starts
``ranks``, ``heap``      compiled: what a rank may start; what comes next
``collectives``          compiled: who meets whom
``chunks``               compiled: chunks, phases and queues of a collective under way
``messages``, ``flows``  compiled: sends and receives; flow groups and their flows
``counters``             compiled: digest, completion times, traffic
``flow_log``             what those add up to; ``traffic``: over time; ``collective_records``: collectives
``releasing``            dependent flows released in front of a network
``stall``                who waits for whom
``records``              what is written down
=======================  =====================================================================
"""
