"""PyTorch's own traces as a workload: execution traces (ET) and Kineto traces, one of each a rank.

===================  =====================================================================
``read``             kind ``pytorch``: which files, which step, which options
``files``            folders, archives, compressed and plain files, read without unpacking
``json_stream``      an object's long list, element by element: memory doesn't grow with the file
``execution_trace``  ET, schemas 1.0 and 1.1: operators with shapes, collectives, process groups
``kineto``           what threads, CUDA calls and GPU work were measured, and one step of it
``communication``    what ``record_param_comms`` says: kind, bytes, group, what is waited for
``link``             Kineto's events to ET's nodes; collectives to each other across ranks
``threads``          a thread's time as stretches of operators, launches, waits and hand-overs
``step``             one rank's measured step, sorted out
``job``              all ranks' steps, and how their communications match
``measured``         one rank's program from what was measured
``estimated``        one rank's program from an ET alone, timed by the compute model
===================  =====================================================================

Follows how Chakra's trace linker and HolisticTraceAnalysis (github.com/facebookresearch) read these formats:
External id and rf_id, correlation, CUDA's synchronisation (Sridharan et al., "Chakra", arXiv 2305.14516).
"""
