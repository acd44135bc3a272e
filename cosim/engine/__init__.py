"""WHEN: the replay, closed-loop, on SimPy's clock with a network beside it, and the records it writes.

=======================  ======================================================================
``reference/``           the same replay in plain SimPy, to read and to check the kernel by
``replay``               the run: the front door, and what joins engine, network and SimPy
``environment``          the SimPy clock, which engine and network run up to
``engine``               jobs in columns; answers what the kernel's loop stops for
``programs``, ``plans``  programs made ready to run, process groups, the plans of collectives
``tables``, ``groups``   these as rows of the columns, the former before a run, the latter when met
``columns``              the columns that the kernel's loop runs on
``flow_log``             what completions add up to; ``operation_log``, ``collective_records``
``releasing``            dependent flows released in front of a network
``directing``            somebody else says where and when jobs begin
``driven``               jobs whose ranks do what processes have them do, as the run goes on
``live``                 what processes need of a replay: of the kernel's, or of the reference
``series``               queues and rates over time
``stall``                who waits for whom
``records``              what is written down, and how far a run is
``accesses``             accesses to memory nodes, as flows: a request and the bytes back, or the bytes and
                         an acknowledgement
``prepared``             runs that begin in one state, each on a copy of it in the kernel (``prepared.c``)
``ports``                ends of messages of ranks: who is at the other end, where both meet, and what is
                         sent
``program_columns``      what the kernel writes a job's programs from (``engine_tables.c``)
``spilled_column``       a column that grows at its end, in a file, and is an array once it is whole
``under_way``            what a rank has under way, and which ranks it waits for
``folding/``             ranks that all fare the same are simulated once and multiplied, where that is
                         provably exact
=======================  ======================================================================

In the kernel (``cosim/kernel/src``), ``engine_loop.c`` is the loop over instants. ``engine_ranks.c`` says
what a rank may start. ``engine_collectives.c`` has ranks meet, ``engine_chunks.c`` carries a collective.
``engine_driven.c`` has ranks do what processes say.
``engine_messages.c`` has sends and receives, ``engine_flows.c`` what the network is given,
``engine_counters.c`` digest and statistics, ``engine_repeats.c`` iterations that repeat.
``engine_tables.c`` writes what is there before a run.
"""
