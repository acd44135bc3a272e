"""Models that become workloads: layers with FLOPs, bytes and parameters, cut by a parallelism.

==================  ==========================================================================
``contract``        what models and frameworks of a scenario are; ``job``: what they give
``parts``           layers of pieces: kernels, then an exchange; what models hand to schedules
``catalogue``       published models under any parallelism: kind ``model``
``transformer``     kind ``transformer``: a GPT, said in short
``frameworks``      what trains them: Megatron-LM, or PyTorch
``pytorch``         layers as eager PyTorch runs them, operator by operator
``training``        how an iteration is done; ``schedule``: the order of a pipeline's passes
``issuer``          operations as the host issues them; ``stage``: Megatron-LM's order of them
``build``           stages as a workload
==================  ==========================================================================
"""
