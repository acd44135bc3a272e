"""File formats, a folder each: what reads one (a workload, a topology, an algorithm) and what writes it.

The core never imports them; they come by entry point, as a plug-in of somebody else's would.
"""
