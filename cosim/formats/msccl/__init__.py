"""MSCCL's XML: a collective algorithm as thread blocks of GPUs, read, proved, timed and written.

The format is that of MSCCL (github.com/Azure/msccl) and its compiler (Cowan et al., "MSCCLang: Microsoft
Collective Communication Language", ASPLOS 2023, doi:10.1145/3575693.3575724).

====================  ======================================================================
``cells``             where the chunks of a plan lie in MSCCL's buffers, phase after phase
``export``            format ``msccl``: one collective as MSCCL XML, the algorithm that NCCL's fork and its
                      successors run
``lower``             a plan of ours as an MSCCL program: messages onto connections, connections onto thread
                      blocks
``program``           a program: what MSCCL XML says, as objects
``program_template``  a program as a template: what is timed
``promise``           what lies in each GPU's buffers before a collective, and what must lie there after it
``prove``             the proof of an MSCCL program: its data, exactly, and every order in which its steps
                      may run
``schedule``          which send meets which receive, in what order the steps of a program can run, and
                      whether they can
``write``             a program to MSCCL XML, as MSCCL's own compiler lays it out
====================  ======================================================================
"""
