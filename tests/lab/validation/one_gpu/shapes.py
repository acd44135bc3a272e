"""What to measure again of published tables: ``... one_gpu.shapes h100_sxm OUT``."""

from __future__ import annotations

import csv
import json
import random
import sys
from pathlib import Path

from tests.lab.validation.kernels import DATA, LARGE


def flops(row: dict[str, str]) -> int:
    """Of attention's products, all scores."""
    return 4 * int(row["batch"]) * int(row["heads"]) * int(row["sequence"]) ** 2 * int(row["head_dim"])


def chosen(table: str) -> dict[str, list[list[object]]]:
    """Rows held out there, drawn at random."""
    draw = random.Random(1)
    products: list[list[object]] = []
    with (DATA / "gpus" / f"{table}_gemm.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    for kind in ("bfloat16", "fp8"):
        for large, count in ((True, 70), (False, 40)):
            fit = [
                row
                for row in rows[1::2]
                if row["dtype"] == kind
                and (2.0 * int(row["m"]) * int(row["n"]) * int(row["k"]) >= LARGE) is large
            ]
            products += [[*(int(row[name]) for name in "mnk"), kind] for row in draw.sample(fit, count)]
    attention: list[list[object]] = []
    with (DATA / "gpus" / f"{table}_attention.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if int(row["sequence"]) >= 1024 and flops(row) < 4e12]
    names = ("batch", "sequence", "heads", "kv_heads", "head_dim")
    for row in draw.sample(rows[1::2], 30):
        attention += [[*(int(row[name]) for name in names), library] for library in ("flash", "cudnn")]
    for length in (1024, 2048, 4096, 8192, 16384):  # as in the papers of FlashAttention: 16,384 tokens
        for head in (64, 128):
            heads = 2048 // head
            for causal in (True, False):
                attention += [
                    [16384 // length, length, heads, heads, head, library, causal]
                    for library in ("flash", "cudnn")
                ]
    return {"products": products, "attention": attention}


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(json.dumps(chosen(sys.argv[1])))
