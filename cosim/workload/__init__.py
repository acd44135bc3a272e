"""What: one job's work, as programs of operations for classes of ranks.

==================  ==========================================================================
``program``         operations, programs, device mesh, workload
``check``           whether a workload can end, as far as is certain before simulating
``chakra``          traces of MLCommons' Chakra
``goal``            GOAL schedules; ``htsim``: connection matrices; ``flow_list``: flow files of ns-3
``tables``          operations and dependencies as CSV or Parquet
``models``          models cut by a parallelism
``synthetic``       small workloads with answers that can be worked out by hand
``written``         operations written in the scenario
``gpus``            GPUs: peaks, and what they reach of them
``compute``         kernels, and how long they take on a GPU
==================  ==========================================================================
"""
