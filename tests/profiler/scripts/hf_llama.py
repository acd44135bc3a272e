"""transformers' Llama with random weights: a plain loop, or --trainer."""

import argparse

import torch
from torch.utils.data import DataLoader
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

parser = argparse.ArgumentParser()
parser.add_argument("--trainer", action="store_true")
options = parser.parse_args()

config = LlamaConfig(
    hidden_size=256,
    intermediate_size=512,
    num_hidden_layers=2,
    num_attention_heads=8,
    num_key_value_heads=4,
    vocab_size=1000,
)
model = LlamaForCausalLM(config)
data = [{"input_ids": torch.arange(128) % 1000, "labels": torch.arange(128) % 1000} for _ in range(64)]

if options.trainer:
    arguments = TrainingArguments(
        "out",
        max_steps=5,
        per_device_train_batch_size=4,
        bf16=True,
        logging_steps=1,
        report_to=[],
        save_strategy="no",
        max_grad_norm=1.0,
    )
    Trainer(model, arguments, train_dataset=data).train()
else:
    model.cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for step, batch in enumerate(DataLoader(data, batch_size=4, shuffle=True, num_workers=2)):
        batch = {key: value.cuda() for key, value in batch.items()}
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(**batch).loss
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        print(step, loss.item(), f"{norm:.2f}")
