"""Processes of one's own that take part in a run: SimPy's, with events of the co-simulation.

==============  ==============================================================
``simulation``  the environment: time, processes, the end of a run
``work``        what processes have ranks do: compute, transfer, collectives
``jobs``        jobs that run beside them: iterations, their end, stop
``job_control`` what is done with these
``held``        jobs that processes have begin
``links``       links as they are now, and what they become
``unsteady``    code that would make two runs differ
``waiting``     who waits for what, and where in his file
==============  ==============================================================
"""
