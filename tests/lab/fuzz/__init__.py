"""What is given to cosim by accident or on purpose: ``python -m tests.lab.fuzz [--minutes N] [--only KIND]``.

Built on hypothesis. Of each input it is asked whether it is read (or run), refused by a
:class:`~cosim.errors.CosimError`, or ends otherwise: a traceback, a hang, a number that can't be. What was
found stands as a test in the room that it was found in.

================  ==========================================================================
``scenarios``     shipped scenarios with something changed, random jobs; invariants of those that run
``importers``     every format of traffic, topologies and algorithms, damaged
``traces``        traces of PyTorch of each kind, damaged
``store``         folders of runs, unfinished runs and their logs, profiles
``wire``          requests to a server and answers of one, damaged and out of order
``signals``       commands that are killed, interrupted, frozen, or have no room to write
``plug-ins``      what plug-ins may answer
================  ==========================================================================
"""
