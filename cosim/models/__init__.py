"""Models that become workloads: layers with FLOPs, bytes and parameters, cut by a parallelism.

===================  ======================================================================
``contract``         what models and frameworks of a scenario are; ``job``: what they give
``parts``            layers of pieces: kernels, then an exchange; what models hand to schedules
``catalogue``        published models under any parallelism: kind ``model``
``transformer``      kind ``transformer``: a GPT, said in short
``frameworks``       what trains them: Megatron-LM, or PyTorch
``pytorch``          layers as eager PyTorch runs them, operator by operator
``training``         how an iteration is done; ``schedule``: the order of a pipeline's passes
``issuer``           operations as the host issues them; ``stage``: Megatron-LM's order of them
``activations``      activations that wait for backward in remote memory, as Transformer Engine's offload to
                     the CPU has them
``offload``          training whose parameters, gradients or optimizer states live in remote memory
``preset_settings``  a workload beside its preset: which settings are the preset's, which another, and what
                     that costs
``presets``          training scripts by name and date: what they set that a scenario would have to say
``stalls``           what hosts that stand still now and then cost an iteration: what their GPUs' queues
                     don't hide
``zero_bubble``      orders of schedules whose backward is parted: gradients of inputs first, of weights
                     when there is time
``megatron/``        Megatron-LM's local layers (``--transformer-impl local``) as torch alone runs them
===================  ======================================================================
"""
