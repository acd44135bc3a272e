"""Synthetic traces: learn a job's traces as statistics, and make others like them.

===============  ======================================================================
``sources``      the traces that are given, as a workload
``model``        what is kept of them: :class:`~cosim.synthesis.model.TraceModel`, a JSON file
``learn``        the model of a workload, with its repeated blocks (``blocks``)
``hide``         the same with ``--hide``: classes and means that enough operations share
``draw``         a workload from a model, a seed, and a number of ranks
``files``        that workload as Chakra .et, one per rank
``audit``        what of the traces can be found in what was made
``draw_hidden``  operations of a hidden rank: each band's classes dealt over its levels
``repeat``       multiply the repeated blocks of a rank's operations
``told``         what ``cosim learn`` prints: what a model has, and what an audit found
===============  ======================================================================
"""
