"""htsim's connection matrices: ``file``, ``read`` as a workload, ``write``."""
