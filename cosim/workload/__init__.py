"""WHAT: one job's work, as programs of operations for classes of ranks.

=====================  ==========================================================================
``contract``           what a workload of a scenario is: a spec that builds one
``program``            operations, programs, device mesh, workload
``check``              whether a workload can end, as far as is certain before simulating
``match_messages``     sends with receives; ``match_collectives``: who meets whom; ``dependencies``
``synthetic``          small workloads with answers that can be worked out by hand
``by_rank``            workloads that are said rank by rank; flows as a send and a receive each
``written``            operations written in the scenario; ``background``: seeded traffic
``draws``              seeded draws, the same on every machine
=====================  ==========================================================================
"""
