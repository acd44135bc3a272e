"""RDMA in ns-3 beside TCP, csg-htsim and the fluid network."""
