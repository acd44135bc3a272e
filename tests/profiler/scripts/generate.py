"""Two requests to a Llama of random weights: transformers' own loop, a prefill and decode steps."""

from __future__ import annotations

import argparse

import torch
from transformers import LlamaConfig, LlamaForCausalLM

read = argparse.ArgumentParser()
for name, value in {
    "layers": 2, "hidden": 256, "heads": 4, "groups": 2, "ffn": 512, "vocab": 1024,
    "batch": 2, "prompt": 32, "new": 4,
}.items():  # fmt: skip
    read.add_argument(f"--{name}", type=int, default=value)
options = read.parse_args()
config = LlamaConfig(
    num_hidden_layers=options.layers, hidden_size=options.hidden, num_attention_heads=options.heads,
    num_key_value_heads=options.groups, intermediate_size=options.ffn, vocab_size=options.vocab,
)  # fmt: skip
model = LlamaForCausalLM(config).cuda().bfloat16().eval()
for _ in range(2):
    prompt = torch.randint(options.vocab, (options.batch, options.prompt)).cuda()
    print(model.generate(prompt, max_new_tokens=options.new, do_sample=False).shape)
