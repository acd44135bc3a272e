"""Megatron-LM's local layers (``--transformer-impl local``) as torch alone runs them.

Without Apex and Transformer Engine there is no fused softmax, no fused Adam and no accumulation in the
gradient's product: what is left are torch's operators, and three functions that ``torch.compile`` fuses.
Written from what Megatron-LM dispatches at d98e8a64dd, with which
``python -m tests.lab.validation.crosscheck_megatron`` compares it.

============  ======================================================================
``blocks``    a GPT's layers as Megatron-LM's local specification has them, on one tensor-parallel rank
``check``     what Megatron-LM's local layers have no way of doing, as far as they are written here
``stage``     a stage's iteration as Megatron-LM's ``train_step`` has it, with torch's operators alone
``training``  how an iteration of Megatron-LM with torch alone is done
============  ======================================================================
"""
