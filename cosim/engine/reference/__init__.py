"""The replay as a SimPy user would write it: to read, to step through in a debugger, and to check the
kernel by.

Each rank is a SimPy process; each operation, message and collective under way is an object, and what ends
it is a SimPy event; a network is ``advance()`` behind the seam. Read it in this order:

===============  ======================================================================
``clock``        SimPy's clock with a network beside it, and the order within one instant
``ranks``        a rank: iterations, dependencies, streams, what it starts
``messages``     sends, receives, accesses to memory nodes
``collectives``  who meets whom; chunks, phases and queues of a collective under way
``flows``        what the network carries for all these, and who waits for it
``digest``       what a run is known by
``recorder``     what is written down, and the columns that are made of it
``sampling``     queues and rates over time
``directing``    somebody else says where and when jobs begin
``stalls``       who waits for whom when nothing can happen any more
``replay``       the run: :func:`~cosim.engine.reference.replay.replay_reference`
``driven``       ranks that processes of your own have do one thing after another
``live``         a run that these take part in: what they see, are told of, and do with jobs
``traffic``      how much a job sends in an iteration, which job-aware congestion controls are told
===============  ======================================================================

It runs every scenario, unfolded, with the digest that the kernel gives; also those with processes, which
live on the same clock (:mod:`cosim.processes.reference`).
"""
