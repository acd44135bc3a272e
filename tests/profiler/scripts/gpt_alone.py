"""A GPT on one GPU, compiled block by block: layer norms, biases, learned positions, GELU."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn

parser = argparse.ArgumentParser()
sizes = dict(
    layers=2, hidden=512, heads=8, kv_heads=8, ffn=1024, vocab=2048, seq=256, batch=1, microbatches=1
)
for name, value in sizes.items():
    parser.add_argument(f"--{name}", type=int, default=value)
parser.add_argument("--bf16", action="store_true")
options = parser.parse_args()
head_dim = options.hidden // options.heads


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.between = nn.LayerNorm(options.hidden), nn.LayerNorm(options.hidden)
        self.q, self.k, self.v, self.o = (nn.Linear(options.hidden, options.hidden) for _ in range(4))
        self.up, self.down = nn.Linear(options.hidden, options.ffn), nn.Linear(options.ffn, options.hidden)

    def forward(self, x):
        inner = self.before(x)
        q, k, v = (w(inner).unflatten(-1, (-1, head_dim)).transpose(1, 2) for w in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(y.transpose(1, 2).flatten(-2))
        return x + self.down(F.gelu(self.up(self.between(x))))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(options.vocab, options.hidden)
        self.places = nn.Embedding(options.seq, options.hidden)
        self.register_buffer("numbers", torch.arange(options.seq)[None], persistent=False)
        self.blocks = nn.ModuleList(Block() for _ in range(options.layers))
        self.norm, self.head = (
            nn.LayerNorm(options.hidden),
            nn.Linear(options.hidden, options.vocab, bias=False),
        )

    def forward(self, tokens):
        x = self.words(tokens) + self.places(self.numbers)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


with torch.device("cuda"):
    model = Model().to(torch.bfloat16 if options.bf16 else torch.float32)
for block in model.blocks:
    block.compile()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
for _ in range(2):
    tokens = torch.randint(options.vocab, (options.batch * options.microbatches, options.seq), device="cuda")
    for part in tokens.chunk(options.microbatches):
        with torch.autocast("cuda", torch.bfloat16, enabled=not options.bf16):
            loss = F.cross_entropy(model(part).flatten(0, 1).float(), part.flatten())
        loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
