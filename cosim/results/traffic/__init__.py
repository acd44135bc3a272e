"""Traffic: who sends how much to whom, with which period, in which pattern; of runs and of captures.

===================  ======================================================================
``analysis``         the analysis of transfers: who sends how much to whom, when, how often, and in which
                     pattern
``beside``           two analyses beside each other: total bytes, who sends to whom, sizes of transfers,
                     periods
``bytes_over_time``  what transfers, each at an even rate, bring in each bin
``causes``           what logs and counters together say is slow
``files``            an analysis as files: the page, JSON, and a CSV behind each figure
``logged``           collectives that ranks logged: how long each kind took, and which rank or communicator
                     is slow
``patterns``         which pattern a group's traffic has: a ring, a tree, a hypercube ..., and which host
                     has which place in it
``periods``          periods of a signal over time, by autocorrelation; several jobs in one signal are told
                     apart
``ports``            counters of ports: rates, gaps, and which ports are one job's, since these have equal
                     rates
``read``             what ``cosim analyse`` is given: runs with messages, and captures
``rings``            rings and trees that NCCL logged, and whether a model has the same
===================  ======================================================================
"""
