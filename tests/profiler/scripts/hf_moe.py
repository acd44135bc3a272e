"""transformers' Mixtral with random weights, in a plain loop."""

import torch
from transformers import MixtralConfig, MixtralForCausalLM

config = MixtralConfig(
    hidden_size=256,
    intermediate_size=512,
    num_hidden_layers=2,
    num_attention_heads=8,
    num_key_value_heads=4,
    vocab_size=1000,
    num_local_experts=8,
    num_experts_per_tok=2,
    output_router_logits=True,
)
model = MixtralForCausalLM(config).cuda().bfloat16()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
tokens = torch.arange(4 * 128, device="cuda").view(4, 128) % 1000
for step in range(3):
    loss = model(input_ids=tokens, labels=tokens).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(step, loss.item())
