"""PyTorch's own traces as a workload: execution traces (ET) and Kineto traces, one of each a rank.

=====================  ======================================================================
``read``               kind ``pytorch``: which files, which step, which options
``files``              folders, archives, compressed and plain files, read without unpacking
``json_stream``        an object's long list, element by element: memory doesn't grow with the file
``execution_trace``    ET, schemas 1.0 and 1.1: operators with shapes, collectives, process groups
``kineto``             what threads, CUDA calls and GPU work were measured, and one step of it
``communication``      what ``record_param_comms`` says: kind, bytes, group, what is waited for
``link``               Kineto's events to ET's nodes; collectives to each other across ranks
``threads``            a thread's time as stretches of operators, launches, waits and hand-overs
``step``               one rank's measured step, sorted out
``job``                all ranks' steps, and how their communications match
``estimated_program``  one rank's program from an ET alone, which has no times: kernels are timed by the
                       compute model
``kernel_times``       what a Kineto trace says of an iteration as a whole: how long it took, and its
                       kernels by kind
``libraries``          libraries that communicate from a GPU: whose kernels a trace's communication is, and
                       where its bytes stand
``measured_program``   one rank's program from its measured step: threads, GPU streams, and what waits for
                       what
``mesh``               the mesh that one rank's process groups are axes of: what one rank's trace says of
                       all others' groups
``self_check``         a replay that checks itself: on measured communications a step has to take as long as
                       the trace says
=====================  ======================================================================

Follows how Chakra's trace linker and HolisticTraceAnalysis (github.com/facebookresearch) read these formats:
External id and rf_id, correlation, CUDA's synchronisation (Sridharan et al., "Chakra", arXiv 2305.14516).
"""
