"""HOW: collectives as messages: algorithms give templates, which are proved before they are timed.

========================  ==========================================================================
``contract``              what an algorithm of a scenario is
``template``              the messages of one collective, as columns; ``build``: of blocks of rows
``ring``, ``direct`` ...  an algorithm each; ``nccl``: NCCL's choice of them
``config``                the ``collectives:`` section; ``costs``: what algorithms need of it
``planner``               collectives in, plans out, cached; ``plan``, ``hierarchical``: chunks by dimension
``prove``                 replays a template on data; ``happens_before``: races; ``proof``: said in words
========================  ==========================================================================
"""
