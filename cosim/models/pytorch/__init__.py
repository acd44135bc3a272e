"""Models as eager PyTorch runs them: one kernel an operator, autograd's backward, DTensor, FSDP, DDP.

Derived from what PyTorch documents of its operators and their derivatives, and from the sizes of the model;
``torch`` is not imported, nothing is profiled. ``tape`` is autograd, ``operators`` what a GPU is asked for by
each, ``sharding`` what DTensor does between them, ``blocks`` a transformer written in them; ``fsdp``
(FSDP2), ``flat`` (FSDP1), ``replicas`` and ``optimizer`` are what happens around, ``stage`` the order of it
all.
"""
