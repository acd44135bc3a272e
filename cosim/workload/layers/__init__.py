"""Training cut by layers: profiles of layers, PipeDream's partitioner, what a plan needs and takes.

==============  ======================================================================
``graph_file``  PipeDream's ``graph.txt``: what its profiler measured of each layer, and who reads whose
                output
``partition``   PipeDream's partitioner: which layers on how many workers, so that the slowest stage is fast
``pipeline``    a plan's stages as programs: minibatches flow through them, one forward, one backward
``profile``     a model as layers in an order in which they can run, with what crosses between them
``staleness``   data parallelism layer by layer: gradients that are used an iteration late (SAPipe), weights
                that are averaged now and then (local SGD)
``workload``    kind ``layers``: a model's layers, measured or timed on a GPU, cut into stages, or with
                stale gradients
==============  ======================================================================
"""
