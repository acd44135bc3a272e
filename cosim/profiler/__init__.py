"""From a PyTorch training script to a workload, without a GPU and without its memory.

==================  ==========================================================================
``launch``          ``cosim profile``: one rank of each class run in a process of its own
``inside``          what runs in that process; the only part that imports torch
``ordering``        streams, events and the host, as CUDA orders what is issued
``trace``           what one rank did
``axes``            a mesh of named axes from the groups that ranks talk in
``lower``           a trace as a program: kernels merged where nothing comes between
``file``            the profile file: written, read, its format
``workload``        ``workload: {kind: profile}``: the file as a workload, timed on a GPU
``workers``         the processes that ranks run in, side by side
``scale``           laws fitted to small profiles, proved on another, applied to a large one
``context``         ``with cosim.profile(...)``
==================  ==========================================================================

Nothing here is imported before it is asked for; ``import cosim`` never brings torch.
"""
