"""WHAT: one job's work, as programs of operations for classes of ranks.

=====================  ======================================================================
``contract``           what a workload of a scenario is: a spec that builds one
``program``            operations, programs, device mesh, workload
``check``              whether a workload can end, as far as is certain before simulating
``match_messages``     sends with receives; ``match_collectives``: who meets whom; ``dependencies``
``synthetic``          small workloads with answers that can be computed by hand
``by_rank``            workloads that are said rank by rank; flows as a send and a receive each
``written``            operations written in the scenario; ``background``: seeded traffic
``draws``              seeded draws, the same on every machine, and times scaled by them
``looked_up``          what is looked up of a workload once, by whoever runs it or says what came of it
``training_settings``  settings of workloads that train: which gradients may be late, averages now and then
``operation``          operations, and programs of them
``stale_gradients``    any training iteration made asynchronous: its gradients used an iteration late, or its
                       weights averaged now and then
``steady_period``      how long an iteration of one rank's program takes, if its operations take the times
                       given
``table``              operations of programs as columns: what is made of them costs per column, not per
                       operation
``unroll``             iterations of a workload one after another in one: for who can't say that an operation
                       waits for another iteration's, and to check who can
``layers/``            training cut by layers: profiles of layers, PipeDream's partitioner, what a plan needs
                       and takes
=====================  ======================================================================
"""
