"""GOAL schedules, as LogGOPSim reads them: in and out.

=========  ======================================================================
``read``   kind ``goal``: a GOAL schedule (LogGOPSim, ATLAHS) as a workload: one program for each rank
``write``  format ``goal``: GOAL text, the schedules of LogGOPSim and ATLAHS
=========  ======================================================================
"""
