"""Two requests to a Llama that a smaller one drafts for: transformers' assisted generation."""

from __future__ import annotations

import argparse

import torch
from transformers import LlamaConfig, LlamaForCausalLM

read = argparse.ArgumentParser()
for name, value in {
    "layers": 2, "hidden": 256, "heads": 4, "groups": 2, "ffn": 512, "vocab": 1024, "prompt": 32, "new": 32,
    "drafted": 5, "draft_layers": 1, "draft_hidden": 128, "draft_heads": 2, "draft_ffn": 256,
}.items():  # fmt: skip
    read.add_argument(f"--{name}", type=int, default=value)
read.add_argument("--sample", action="store_true")
options = read.parse_args()


def llama(layers: int, hidden: int, heads: int, ffn: int) -> LlamaForCausalLM:
    config = LlamaConfig(
        num_hidden_layers=layers, hidden_size=hidden, num_attention_heads=heads, intermediate_size=ffn,
        num_key_value_heads=options.groups, vocab_size=options.vocab,
    )  # fmt: skip
    return LlamaForCausalLM(config).cuda().bfloat16().eval()


model = llama(options.layers, options.hidden, options.heads, options.ffn)
draft = llama(options.draft_layers, options.draft_hidden, options.draft_heads, options.draft_ffn)
draft.generation_config.num_assistant_tokens = options.drafted
draft.generation_config.num_assistant_tokens_schedule = "constant"
for _ in range(2):
    prompt = torch.randint(options.vocab, (1, options.prompt)).cuda()
    out = model.generate(prompt, assistant_model=draft, max_new_tokens=options.new, do_sample=options.sample)
    print(out.shape)
