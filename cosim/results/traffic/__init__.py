"""Traffic: who sends how much to whom, with which period, in which pattern; of runs and of captures.

===================  ====================================================================
``read``             a run's folder or a capture, as one
``analysis``         of transfers: pairs, parts, bursts
``bytes_over_time``  what transfers bring in each bin
``periods``          of a signal
``patterns``         which algorithm a group's pairs are
``ports``            counters: rates, gaps, ports of one job
``logged``           collectives that ranks logged: which rank or communicator is slow
``causes``           what logs and counters together say is slow
``beside``           two analyses compared
``files``            the page, JSON and CSV
===================  ====================================================================
"""
