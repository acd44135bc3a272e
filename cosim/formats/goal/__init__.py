"""GOAL schedules, as LogGOPSim reads them: in and out."""
