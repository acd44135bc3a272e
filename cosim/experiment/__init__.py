"""A question: scenario files, and running them.

=================  ==========================================================================
``scenario``       what a scenario is; ``load`` a file
``settings``       ``--set path=value``
``mistakes``       validation errors with file, line, key, value and the way out
``fields``         what a field takes, in words
``idle``           settings that can't affect the result
``build``          topology, network, jobs on endpoints and planner of a scenario
``run``            the run itself; ``save`` writes its folder
``progress``       a bar for long runs
``catalog``        ``cosim list``
=================  ==========================================================================
"""
