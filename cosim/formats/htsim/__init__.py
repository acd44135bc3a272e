"""htsim's connection matrices: ``file``, ``read`` as a workload, ``write``.

============  ======================================================================
``topology``  htsim's ``.topo``: a fat tree of two or three tiers, by the radix of its switches
``triggers``  what flows wait for, said by the triggers that csg-htsim's programs fire
============  ======================================================================
"""
