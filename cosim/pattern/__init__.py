"""HOW: collectives as messages: algorithms give templates, which are proved before they are timed.

======================  ======================================================================
``contract``            what an algorithm of a scenario is
``template``            the messages of one collective, as columns; ``build``: of blocks of rows ``ring``,
                        ``direct`` ...  an algorithm each; ``nccl``: NCCL's choice of them
``config``              the ``collectives:`` section; ``costs``: what algorithms need of it
``planner``             collectives in, plans out, cached; ``plan``, ``hierarchical``: chunks by dimension
``prove``               replays a template on data; ``happens_before``: races; ``proof``: said in words
``plain_replay``        the same replay without the kernel
``assemble``            putting a template together from blocks of rows, without a Python object for each
                        message
``bruck``               bruck's all-gather: ceil(log2 N) steps for any number of ranks
``dissemination``       dissemination barrier: in step i rank r tells r + 2^i that it, and all it heard of,
                        has arrived
``double_binary_tree``  reduce up a tree, hand down again; chunks alternate between two trees
``doubling``            what algorithms share whose ranks hold twice as many chunks after each step of an
                        all-gather
``far_steps``           latency of messages between hosts: what waits for one waits for so much longer, and
                        nothing else does
``group_links``         the links between a group's ranks: what algorithms that are made for a fabric go by
``halving_doubling``    recursive halving and doubling: log2 N steps, partners 1, 2, 4, ... apart
``mscclpp/``            kernels of loads and stores: MSCCL++'s execution plans, and plans of our own
``multi_ring``          several rings at once, each by a stride of its own: rank i sends to i + s, and on
                        another ring to i - s
``nccl_between``        NCCL's own estimate of a collective's time between hosts, by which current NCCL
                        chooses how it goes
``nccl_fit``            fits ``nccl``'s parameters to measured collectives of one host, by the closed forms
                        of its algorithms
``nccl_host``           what NCCL's collectives take inside one host, by system: fitted laws of a ring,
                        direct exchange and NVLS
``nccl_mesh``           rings inside a host whose GPUs have links to some of the others (NCCL, RCCL)
``nccl_nvls_tree``      NCCL's NVLS tree: NVSwitch adds up inside each host, trees of hosts between,
                        NVSwitch sends to all
``nccl_pxn``            NCCL's all-to-all between hosts by PXN: a message takes the NIC of its receiver's
                        rail
``nccl_rings``          the order in which NCCL's rings pass GPUs: between hosts, or as it is given
``nccl_tree``           NCCL's double binary tree: two trees over hosts, a chain inside each, half the data
                        on each tree
``nccl_tuning``         NCCL's own estimate of a collective's time, by which it chooses algorithm and
                        protocol
``nccl_wire``           what NCCL's messages are on wires: bytes with flags and headers, and NCCL's delays
``pat``                 PAT, parallel aggregated trees: the farthest ranks first, so that long ways carry
                        one chunk only
``pieces``              pieces that follow each other: the messages of one piece of the data, repeated for
                        each piece
``recursive_doubling``  recursive doubling by whole buffers: log2 N steps, in each all of the data to a
                        partner and back
``rows``                messages in their normal form: one row each, with the fewest dependencies, in an
                        order that is their own
``send_recv``           send and receive: one message from rank 0 to rank 1 of a group of two
``swing``               halving and doubling whose partners are close on a ring or torus: 1, 1, 3, 5, 11 ...
                        places apart
``synthesis``           which link carries which chunk when, found link by link as time goes on (TACOS)
``tacos``               algorithms made for the links that a group has (TACOS)
``tree``                binomial tree broadcast: who has the data hands it on, so holders double at each
                        step
``unread``              an algorithm that stands in a file: what is read from it builds the template
======================  ======================================================================
"""
