"""File formats, a folder each: what reads one (a workload, a topology, an algorithm) and what writes it.

The core never imports them; they come by entry point, as a plug-in of somebody else's would.

==================  ======================================================================
``astra_sim/``      ASTRA-sim's whole input: Chakra traces, network, system, memory and process groups, and
                    a command line
``cables/``         lists of cables as people and their tools keep them: CSV, GraphML, ibnetdiscover, LLDP,
                    NetBox
``chakra/``         Chakra execution traces, MLCommons' format for what one rank of a job did
``flow_csv/``       flow records as CSV: a run's messages, a row each
``flow_list/``      a line for each flow, in and out
``goal/``           GOAL schedules, as LogGOPSim reads them: in and out
``htsim/``          htsim's connection matrices: ``file``, ``read`` as a workload, ``write``
``infragraph/``     InfraGraph infrastructures, as topologies
``inspector/``      NCCL Inspector's JSON: what it would have logged of a run of ours
``msccl/``          MSCCL's XML: a collective algorithm as thread blocks of GPUs, read, proved, timed and
                    written
``nccl_tests/``     what nccl-tests print: a collective's time by size
``nccl_topology/``  NCCL's own topology dumps of a host
``ns3/``            topologies of ns-3 simulators of RDMA: HPCC, ConWeave, SimAI
``pcap/``           packet captures: a run's messages as RoCEv2 packets
``pytorch/``        PyTorch's own traces as a workload: execution traces (ET) and Kineto traces, one of each
                    a rank
``simai/``          SimAI and AICB workload files
``tables/``         workloads as tables, CSV or Parquet: nothing of a job is lost
``counters/``       counters of ports as CSV: what switches that hosts are on would have counted in a run
==================  ======================================================================
"""
