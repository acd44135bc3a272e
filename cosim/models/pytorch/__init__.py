"""Models as eager PyTorch runs them: one kernel an operator, autograd's backward, DTensor, FSDP, DDP.

Derived from what PyTorch documents of its operators and their derivatives, and from the sizes of the model;
``torch`` is not imported, nothing is profiled. ``tape`` is autograd, ``operators`` what a GPU is asked for by
each, ``sharding`` what DTensor does between them, ``blocks`` a transformer written in them; ``fsdp``
(FSDP2), ``flat`` (FSDP1), ``replicas`` and ``optimizer`` are what happens around, ``stage`` the order of it
all.

================  ======================================================================
``check``         what eager PyTorch has no way of doing, and settings that mean nothing to it
``compiled``      a Llama's block as ``torch.compile`` makes it of the same operators: Inductor's fusions,
                  each a kernel
``compiled_gpt``  a GPT's block as ``torch.compile`` makes it: layer norms, biases, GeLU
``data``          what data parallelism does as passes go by: nothing, unless it says so
``experts``       a mixture of experts in PyTorch's operators, tokens sent to the ranks that have their
                  experts
``looped``        a rank's iteration under a looped schedule of torch.distributed.pipelining: several stages
                  of it on a rank
``memory``        bytes of a GPU that trains in eager PyTorch, at the moments of an iteration at which it
                  may be fullest
``parted``        a rank's iteration under a schedule whose backward is parted
                  (``torch.distributed.pipelining``)
``rows``          how Inductor splits sums over rows
``symmetric``     async tensor parallelism: a product and what tensor-parallel ranks exchange around it, by
                  symmetric memory
``training``      how an iteration of eager PyTorch is done, beyond what holds for any framework
================  ======================================================================
"""
