"""Topology and parallelism found in turns, as TopoOpt does.

``demand``     what a job's groups and pairs send in an iteration
``links``      a server's links shared out between rings and matchings
``alternate``  topology for a parallelism, parallelism for that topology, until nothing improves

Source: W. Wang et al., "TopoOpt: Co-optimizing Network Topology and Parallelization Strategy for Distributed
Training Jobs", NSDI 2023, arXiv 2202.00433.
"""
