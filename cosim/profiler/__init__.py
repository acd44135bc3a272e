"""From a PyTorch training script to a workload, without a GPU and without its memory.

=================  ======================================================================
``launch``         ``cosim profile``: one rank of each class run in a process of its own
``inside``         what runs in that process; the only part that imports torch
``ordering``       streams, events and the host, as CUDA orders what is issued
``trace``          what one rank did
``axes``           a mesh of named axes from the groups that ranks talk in
``lower``          a trace as a program: kernels merged where nothing comes between
``file``           the profile file: written, read, its format
``workload``       ``workload: {kind: profile}``: the file as a workload, timed on a GPU
``workers``        the processes that ranks run in, side by side
``scale``          laws fitted to small profiles, proved on another, applied to a large one
``context``        ``with cosim.profile(...)``
``distributions``  what no profile can know, as an argument: experts of tokens, lengths of answers,
                   acceptance of drafts
``growth``         how a sequence of steps grows with a parameter: which blocks it has more of, and where
``kept``           profiles of scripts, kept until something that they depend on changes
``profile_page``   what ``cosim profile`` prints: what was found, in a page
``rank_classes``   which ranks do the same: the mesh that their groups are made of, and who sends messages
``verify``         whether the last rank does what the one that stands for it does: the same collectives, as
                   much computation
=================  ======================================================================

Nothing here is imported before it is asked for; ``import cosim`` never brings torch.
"""
