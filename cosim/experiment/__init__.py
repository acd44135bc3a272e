"""A question: scenarios and sweeps, and running them.

=================  ==========================================================================
``run``            ``cosim.run``, ``cosim.sweep``: whatever can be asked, and what goes together
``scenario``       what a scenario is; ``load`` a file
``sweep``          what a sweep is: axes of choices, seeds, measures
``settings``       ``--set path=value``
``mistakes``       validation errors with file, line, key, value and the way out
``fields``         what a field takes, in words
``idle``           settings that can't affect the result
``build``          topology, network, jobs on endpoints and planner of a scenario; ``fold``
``simulate``       one scenario: ``Run``; ``save`` writes its folder, ``resume`` goes on with it
``trials``         the runs of a sweep, in several processes
``networks``       a scenario on several networks
``alone``          each job by itself
``open_loop``      recorded messages at their recorded times
``progress``       what callers are told, and a bar
``catalog``        ``cosim list``
``prove``, ``serve``, ``translate``
                   the commands of these names
=================  ==========================================================================
"""
