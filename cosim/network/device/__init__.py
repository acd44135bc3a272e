"""``device``: loads and stores on GPUs with compute units, line by line.

=============  ======================================================================
``gpus``       what a GPU is: units, mesh, channels, ports; those that have names
``settings``   what a scenario says of the network
``network``    the simulator around ``cosim/kernel/src/device.c``
=============  ======================================================================

A message is ``ceil(bytes / granularity)`` lines, carried by workgroups, which are placed on compute units in
turn. A wavefront of a workgroup asks for ``unroll`` lines at once, and for its next ones when the answers to
all of these are there. A unit has at most ``outstanding`` lines in flight.

A *put* loads lines from its own memory and stores them in the other GPU's, which answers each. A *get* asks
for lines, which come as the answer. So a put's data is there after one way, a get's after two. A message of
no bytes is a flag: one request that is stored. Flags, requests and answers without data have ``control``
bytes, and share links with data: first come, first served, or ``fair``, by turns.

Lines pass, first come, first served: a memory channel, the mesh of routers (first along the row, then along
the column), the unit, the mesh, a port, then the topology's links, and in the other GPU a port, the mesh and
a channel. Each serves one line after the other at its rate; consecutive lines of a wavefront go one behind
the other, and are one event at each node that they come to. That is exact as long as no others come
between them; where some do, these wait for the whole of what came before them, up to ``unroll`` lines.

Answers go back as their requests came.

Computations share units with kernels where ``workgroup_time`` says for how long a workgroup of one has a unit
to itself: it has whole waves, of one workgroup on each unit, and together they take its time. A kernel's
blocks have their units from its rank's arrival, or the end of the workgroup that is there, until its rank's
end. Other messages' workgroups have theirs until all is answered. What is left goes to computations, the
oldest first.

Messages whose channels say so are a thread block's (:mod:`cosim.pattern.mscclpp`): one workgroup, on the
unit of the block's number. Others are carried by ``workgroups`` of them.

A message completes when its last line is in the memory of its destination. Where switches add up or copy
(rows marked as merged), each link carries lines once: the request's own link is left out for all but one row.

Not modelled: caches and their hits, virtual addresses, bank conflicts and refresh of memories, back-pressure
(queues are unbounded), a switch's own buffers, link errors and changes of links.

Source: the generic GPU and its words follow ASTRA-sim 3.0 (arXiv 2606.10440), which came without code.
"""
