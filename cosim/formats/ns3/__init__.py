"""Topologies of ns-3 simulators of RDMA: HPCC, ConWeave, SimAI."""
