"""transformers' Llama with random weights, sharded by its own tensor parallel plan: trained, or --generate."""

import argparse

import torch
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.distributed import DistributedConfig

parser = argparse.ArgumentParser()
parser.add_argument("--generate", action="store_true")
options = parser.parse_args()

config = LlamaConfig(
    hidden_size=256,
    intermediate_size=512,
    num_hidden_layers=2,
    num_attention_heads=8,
    num_key_value_heads=8,
    vocab_size=1024,
)
model = LlamaForCausalLM.from_pretrained(
    None, config=config, state_dict={}, dtype=torch.bfloat16,
    distributed_config=DistributedConfig(tp_plan="auto"),
)  # fmt: skip
optimizer = None if options.generate else torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=False)
for _ in range(5):
    tokens = torch.randint(1024, (2, 32), device=model.device)
    if optimizer is None:
        print(model.eval().generate(tokens, max_new_tokens=4, do_sample=False).shape)
    else:
        model(tokens, labels=tokens).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
