"""Counters of ports as CSV: what switches that hosts are on would have counted in a run."""
