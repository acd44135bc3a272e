"""Processes of your own that take part in a run: SimPy's, with events of the co-simulation.

=====================  ======================================================================
``simulation``         the environment: time, processes, the end of a run
``work``               what processes have ranks do: compute, transfer, collectives
``jobs``               jobs that run beside them: iterations, their end, stop ``job_control`` what is done
                       with these
``held``               jobs that processes have begin
``links``              links as they are now, and what they become
``unsteady``           code that would make two runs differ
``waiting``            who waits for what, and where in his file
``aggregation_trees``  trees of switches that add up: where a group's data goes up, is added, and comes down
                       again
``carrier``            code that gives the messages of a collective while the run goes on
``carrying``           the collectives under way that code carries: who tells carriers what happened, and
                       does what they ask
``circuits``           optical circuits between endpoints, which a process moves while a run goes on
``contract``           what a scenario names: jobs that processes drive, and processes beside the jobs
``in_network``         in-network aggregation: switches add up what ranks send, and send everybody the sum
``reference``          the environment on the reference engine's clock
``ledger``             who has whose data of a collective that code carries: what is proved of it as it runs
``slot_pool``          slots of a switch that several jobs share by hash: who holds which of them when
=====================  ======================================================================
"""
