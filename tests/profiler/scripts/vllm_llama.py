"""Two requests to a Llama of random weights by vLLM, as its users write it."""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from pathlib import Path

from vllm import LLM, SamplingParams

read = argparse.ArgumentParser()
for name, value in {
    "layers": 2, "hidden": 256, "heads": 8, "groups": 8, "ffn": 512, "vocab": 1024,
    "batch": 2, "prompt": 32, "new": 4, "tp": 1, "cache": 256,
}.items():  # fmt: skip
    read.add_argument(f"--{name}", type=int, default=value)
options = read.parse_args()
config = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "bfloat16",
    "num_hidden_layers": options.layers, "hidden_size": options.hidden, "num_attention_heads": options.heads,
    "num_key_value_heads": options.groups, "intermediate_size": options.ffn, "vocab_size": options.vocab,
    "max_position_embeddings": 8192, "rms_norm_eps": 1e-5, "tie_word_embeddings": False,
}  # fmt: skip
with tempfile.TemporaryDirectory() as folder:
    Path(folder, "config.json").write_text(json.dumps(config))
    llm = LLM(
        model=folder,
        skip_tokenizer_init=True,
        tensor_parallel_size=options.tp,
        kv_cache_memory_bytes=options.cache << 20,
    )
    params = SamplingParams(max_tokens=options.new, temperature=0.0, detokenize=False)
    for _ in range(2):  # each of other words: what has been asked before is kept
        prompts = [random.choices(range(options.vocab), k=options.prompt) for _ in range(options.batch)]
        llm.generate([{"prompt_token_ids": words} for words in prompts], params, use_tqdm=False)
