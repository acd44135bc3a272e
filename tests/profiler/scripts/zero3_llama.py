"""Llama of 70 billion parameters under DeepSpeed's ZeRO-3, with activation checkpointing; random tokens."""

import deepspeed
import torch
from transformers import LlamaConfig, LlamaForCausalLM

settings = {
    "train_micro_batch_size_per_gpu": 1,
    "gradient_accumulation_steps": 1,
    "gradient_clipping": 1.0,
    "bf16": {"enabled": True},
    "zero_optimization": {"stage": 3, "overlap_comm": True},
    "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "torch_adam": True}},
}
config = LlamaConfig(
    vocab_size=32000, hidden_size=8192, intermediate_size=28672, num_hidden_layers=80, num_attention_heads=64,
    num_key_value_heads=8, max_position_embeddings=4096, use_cache=False,
)  # fmt: skip
deepspeed.init_distributed()
with deepspeed.zero.Init(config_dict_or_path=settings, dtype=torch.bfloat16):
    model = LlamaForCausalLM(config)
model.gradient_checkpointing_enable()
engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=settings)
for _ in range(4):
    tokens = torch.randint(0, 32000, (1, 4096), device=engine.device)
    engine.backward(engine(input_ids=tokens, labels=tokens).loss)
    engine.step()
