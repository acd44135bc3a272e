"""What the public scripts of ``public_scripts.yaml`` read: random data and tiny models, in their formats.

``python -m tests.lab.benchmarks.public_scripts_data FOLDER`` writes them into FOLDER, beside and into the
repositories that lie there, and says which repositories and packages are missing; it fetches nothing.
``git clone`` each repository of ``REPOSITORIES`` into FOLDER under its name here and check its version out,
and install ``PACKAGES`` into the environment of cosim. The same seed gives the same files.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import json
import pickle
import random
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import yaml

REPOSITORIES = {
    "nanoGPT": "karpathy/nanoGPT 3adf61e1", "minGPT": "karpathy/minGPT 37baab7",
    "Megatron-LM": "NVIDIA/Megatron-LM d98e8a64dd", "examples": "pytorch/examples 77f55b9",
    "modded-nanogpt": "KellerJordan/modded-nanogpt f411b3d3", "nanochat": "karpathy/nanochat 92d63d4",
    "pytorch-lightning": "Lightning-AI/pytorch-lightning 7f0c3436cd",
    "timm": "huggingface/pytorch-image-models aa4b5850", "diffusers": "huggingface/diffusers 58eb52c080",
    "DeepSpeedExamples": "deepspeedai/DeepSpeedExamples 45b4b715", "dlrm": "facebookresearch/dlrm 090956e",
    "torchtune": "pytorch/torchtune v0.6.1-rc3", "torchtitan-0.2.2": "pytorch/torchtitan v0.2.2",
    "torchrec": "pytorch/torchrec a48cef79", "accelerate": "huggingface/accelerate 16cb6eb8",
}  # fmt: skip
"""By the folder in which they are looked for: repository and commit."""
PACKAGES = (
    "torch==2.13.0", "torchvision==0.28.0", "transformers==5.23.0", "accelerate==1.15.0", "datasets==5.2.0",
    "tokenizers==0.23.3", "trl==1.16.0", "deepspeed==0.19.8", "lightning==2.6.6", "torchmetrics==1.9.0",
    "diffusers==0.42.1", "tiktoken==0.14.0", "pillow", "tensorboard", "rustbpe", "wandb",
    "torchao==0.11.0", "torchdata==0.11.0", "omegaconf==2.3.1", "sentencepiece==0.2.3", "blobfile==3.3.0",
    "tyro==1.0.17", "typeguard", "torchrec==1.8.0", "fbgemm-gpu-cpu==1.8.0", "tensordict", "iopath",
    "evaluate==0.4.6",
)  # fmt: skip
_SUBJECT = ("the", "model", "learns", "what", "data", "and", "networks", "carry", "between", "small", "ranks")
_WORDS = [f"{word}{place}" for place in range(8) for word in _SUBJECT]


def missing(folder: Path) -> list[str]:
    """Repositories that aren't in FOLDER, and packages that aren't installed in their versions."""
    found = [
        f"{folder / name}: {where}" for name, where in REPOSITORIES.items() if not (folder / name).is_dir()
    ]
    for package in PACKAGES:
        name, _, version = package.partition("==")
        try:
            here = importlib.metadata.version(name).partition("+")[0]
        except importlib.metadata.PackageNotFoundError:
            here = "none"
        if here != version and (version or here == "none"):
            found.append(f"{package} (here: {here})")
    return found


_ACCURACY = '''"""The share of answers that are right."""

import datasets
import evaluate


class Glue(evaluate.Metric):
    """As the Hub's `glue` is asked."""

    def _info(self):
        kinds = datasets.Features({k: datasets.Value("int64") for k in ("predictions", "references")})
        return evaluate.MetricInfo(description="", citation="", inputs_description="", features=kinds)

    def _compute(self, predictions, references):
        return {"accuracy": sum(p == r for p, r in zip(predictions, references)) / len(references)}
'''


class Data:
    """Writes into ``folder``; every file is drawn from one generator, in the order of the calls."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.assets = folder, folder / "assets"
        self.numbers, self.words = np.random.default_rng(0), random.Random(0)

    def write(self) -> None:
        """Everything."""
        self._tokens()
        self._conversations()
        self._settings()
        self._shards()
        self._chat()
        self._images()
        for place in ("pytorch-lightning/Datasets", "examples/data", "examples/mnist/data"):
            self._digits(self.folder / place)
        self._models()
        self._language()
        self._recipes()
        self._hub()

    def _text(self, count: int) -> str:
        return " ".join(self.words.choice(_WORDS) for _ in range(count))

    def _tokens(self) -> None:
        """Of nanoGPT: files of 16-bit tokens."""
        for name, vocabulary in (("shakespeare_char", 65), ("openwebtext", 50257)):
            place = self.folder / "nanoGPT" / "data" / name
            place.mkdir(parents=True, exist_ok=True)
            for part in ("train", "val"):
                tokens = self.numbers.integers(0, vocabulary, 200_000)
                tokens.astype(np.uint16).tofile(place / f"{part}.bin")
        letters = [chr(32 + code) for code in range(65)]
        about = {
            "vocab_size": 65,
            "itos": dict(enumerate(letters)),
            "stoi": {c: k for k, c in enumerate(letters)},
        }
        (self.folder / "nanoGPT/data/shakespeare_char/meta.pkl").write_bytes(pickle.dumps(about))

    def _conversations(self) -> None:
        """Of TRL's trainers: lines of JSON, 128 to train on. Answers are longer than their models read, all
        prompts the same, so that every batch is as long.
        """
        self._lines("lm", [{"text": self._text(80)} for _ in range(128)])
        asked = self._text(10)
        self._lines("dpo", [{"prompt": asked, "chosen": self._text(40), "rejected": self._text(40)}
                            for _ in range(128)])  # fmt: skip
        self._lines("kto", [{"prompt": asked, "completion": self._text(40), "label": k % 2 == 0}
                            for k in range(128)])  # fmt: skip
        self._lines("reward", [{"chosen": self._text(20), "rejected": self._text(20)} for _ in range(128)])
        self._lines("chat", [{"prompt": [{"role": "user", "content": asked}]} for _ in range(128)])

    def _lines(self, name: str, rows: list[dict[str, Any]]) -> None:
        place = self.assets / name
        place.mkdir(parents=True, exist_ok=True)
        for part, some in (("train", rows), ("test", rows[:16])):
            (place / f"{part}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in some))

    def _shards(self) -> None:
        """Of modded-nanogpt: its header of 256 numbers, then tokens of 16 bits."""
        place = self.folder / "modded-nanogpt/data/fineweb10B"
        place.mkdir(parents=True, exist_ok=True)
        for part, count in (("val", 21 * 2**19), ("train", 10 * 2**19)):
            head = np.zeros(256, np.int32)
            head[:3] = 20240520, 1, count
            tokens = self.numbers.integers(0, 50257, count).astype(np.uint16)
            (place / f"fineweb_{part}_000001.bin").write_bytes(head.tobytes() + tokens.tobytes())

    def _chat(self) -> None:
        """Of nanochat: texts in parquet, and a tokenizer of single bytes."""
        import torch

        tables: Any = importlib.import_module("pyarrow")
        files: Any = importlib.import_module("pyarrow.parquet")
        encoding: Any = importlib.import_module("tiktoken").Encoding
        place = self.assets / "nanochat"
        for name in ("base_data_climbmix", "tokenizer"):
            (place / name).mkdir(parents=True, exist_ok=True)
        for number in range(2):
            texts = tables.table({"text": [self._text(200) for _ in range(256)]})
            path = place / f"base_data_climbmix/shard_{number:05d}.parquet"
            files.write_table(texts, path, row_group_size=16)
        who = ("user", "assistant", "python", "output")
        roles = [f"{role}_{end}" for role in who for end in ("start", "end")]
        special = {f"<|{name}|>": 256 + place for place, name in enumerate(["bos", *roles])}
        letters = {bytes([code]): code for code in range(256)}
        made = encoding("bytes", pat_str=r"[\s\S]", mergeable_ranks=letters, special_tokens=special)
        (place / "tokenizer/tokenizer.pkl").write_bytes(pickle.dumps(made))
        lengths = torch.tensor([1] * 256 + [0] * len(special), dtype=torch.int32)
        torch.save(lengths, place / "tokenizer/token_bytes.pt")

    def _settings(self) -> None:
        """Of DeepSpeed under the Hugging Face Trainer: one file a stage."""
        for stage in (1, 2, 3):
            settings = {
                "zero_optimization": {"stage": stage},
                "train_micro_batch_size_per_gpu": "auto",
                "gradient_accumulation_steps": "auto",
                "bf16": {"enabled": "auto"},
            }
            (self.assets / f"zero{stage}.json").write_text(json.dumps(settings))

    def _language(self) -> None:
        """Megatron-LM wants ``typing.override``; with this folder on PYTHONPATH Python 3.11 has it."""
        place = self.folder / "python311"
        place.mkdir(exist_ok=True)
        body = "import typing, typing_extensions\ntyping.override = typing_extensions.override\n"
        (place / "sitecustomize.py").write_text(body)

    def _images(self) -> None:
        """Folders of four classes, 64 x 64."""
        pictures: Any = importlib.import_module("PIL.Image")
        for part, count in (("train", 16), ("val", 4), ("validation", 4)):
            for kind in range(4):
                place = self.assets / "images" / part / f"class{kind}"
                place.mkdir(parents=True, exist_ok=True)
                for number in range(count):
                    pixels = self.numbers.integers(0, 255, (64, 64, 3)).astype(np.uint8)
                    pictures.fromarray(pixels).save(place / f"{number}.png")

    def _digits(self, place: Path) -> None:
        """As MNIST's files are."""
        for part, count in (("train", 512), ("t10k", 256)):
            raw = place / "MNIST" / "raw"
            raw.mkdir(parents=True, exist_ok=True)
            pixels = self.numbers.integers(0, 256, (count, 28, 28))
            _write_idx(raw / f"{part}-images-idx3-ubyte", pixels)
            _write_idx(raw / f"{part}-labels-idx1-ubyte", self.numbers.integers(0, 10, (count,)))

    def _recipes(self) -> None:
        """Of torchtune: its own settings for 7B and 8B, of a tiny model on texts of this program's; of
        torchtitan: texts.
        """
        place = self.assets / "torchtune"
        place.mkdir(parents=True, exist_ok=True)
        asked = [{"instruction": self._text(20), "input": "", "output": self._text(60)} for _ in range(128)]
        (place / "alpaca.json").write_text(json.dumps(asked))
        ranked = [{"question": self._text(20), **{f"response_{k}": self._text(60) for k in "jk"}}
                  for _ in range(128)]  # fmt: skip
        (place / "pairs.json").write_text(json.dumps(ranked))
        (self.folder / "torchtune/data/rl").mkdir(parents=True, exist_ok=True)  # of pairs
        _recipe(self.folder, "sft", "llama2/7B_full")
        _recipe(self.folder, "dpo", "llama3_1/8B_full_dpo")
        _recipe(self.folder, "lora_dpo", "llama2/7B_lora_dpo")
        texts = self.folder / "torchtitan-0.2.2/tests/assets/c4_test"
        texts.mkdir(parents=True, exist_ok=True)
        lines = "".join(json.dumps({"text": self._text(3000)}) + "\n" for _ in range(60))
        (texts / "data.json").write_text(lines)

    def _hub(self) -> None:
        """What accelerate's example names in the Hub, where it is started: pairs of sentences, a
        metric, BERT with two layers of 64.
        """
        models: Any = importlib.import_module("transformers")
        place = self.assets / "hub"
        pairs, metric = place / "nyu-mll" / "glue", place / "glue"
        for each in (pairs, metric):
            each.mkdir(parents=True, exist_ok=True)
        parts = {"train": 256, "validation": 64, "test": 64}
        for part, count in parts.items():
            rows = [
                {"sentence1": self._text(20), "sentence2": self._text(20), "label": k % 2, "idx": k}
                for k in range(count)
            ]
            (pairs / f"{part}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        files = [{"split": part, "path": f"{part}.jsonl"} for part in parts]
        about = {"configs": [{"config_name": "mrpc", "data_files": files}]}
        (pairs / "README.md").write_text(f"---\n{yaml.safe_dump(about)}---\n")
        (metric / "glue.py").write_text(_ACCURACY)
        sizes = {
            "vocab_size": 512, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
            "num_attention_heads": 4, "max_position_embeddings": 256, "pad_token_id": 0,
        }  # fmt: skip
        bert = models.BertForSequenceClassification(models.BertConfig(**sizes))
        bert.save_pretrained(place / "bert-base-cased")
        models.AutoTokenizer.from_pretrained(self.assets / "tiny").save_pretrained(place / "bert-base-cased")

    def _models(self) -> None:
        """Llama with two layers of 64, and a tokenizer of 500 words; with a reward's head, too; and with
        the 2,000 words of torchtune's test tokenizer.
        """
        import torch

        words: Any = importlib.import_module("tokenizers")
        models: Any = importlib.import_module("transformers")
        made = words.Tokenizer(words.models.BPE())
        made.pre_tokenizer = words.pre_tokenizers.ByteLevel(add_prefix_space=False)
        made.decoder = words.decoders.ByteLevel()
        special = ["<pad>", "<s>", "</s>"]
        letters = words.pre_tokenizers.ByteLevel.alphabet()
        trainer = words.trainers.BpeTrainer(vocab_size=500, special_tokens=special, initial_alphabet=letters)
        made.train_from_iterator([self._text(1000)], trainer)
        tokenizer = models.PreTrainedTokenizerFast(
            tokenizer_object=made, bos_token="<s>", eos_token="</s>", pad_token="<pad>"
        )
        tokenizer.chat_template = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}</s>{% endfor %}"
        sizes = {
            "vocab_size": 512, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
            "num_attention_heads": 4, "num_key_value_heads": 4, "max_position_embeddings": 256,
            "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "dtype": "float32",
        }  # fmt: skip
        torch.manual_seed(0)
        models.LlamaForCausalLM(models.LlamaConfig(**sizes)).save_pretrained(self.assets / "tiny")
        scorer = models.LlamaForSequenceClassification(models.LlamaConfig(**sizes, num_labels=1))
        scorer.save_pretrained(self.assets / "tiny-reward")
        more = models.LlamaConfig(**{**sizes, "vocab_size": 2000})
        models.LlamaForCausalLM(more).save_pretrained(self.assets / "tiny-2000")
        for name in ("tiny", "tiny-reward"):
            tokenizer.save_pretrained(self.assets / name)
            # transformers 4 knows it by its old name only
            about = self.assets / name / "tokenizer_config.json"
            about.write_text(about.read_text().replace("TokenizersBackend", "PreTrainedTokenizerFast"))


def _recipe(folder: Path, name: str, source: str) -> None:
    """torchtune's settings ``source``, of the tiny model, and a gradient a step."""
    made = yaml.safe_load((folder / "torchtune/recipes/configs" / f"{source}.yaml").read_text())
    adapters = {key: value for key, value in made["model"].items() if key.startswith(("lora", "apply"))}
    made["model"] = {
        "_component_": "torchtune.models.llama2." + ("lora_llama2" if adapters else "llama2"),
        "vocab_size": 2000, "num_layers": 2, "num_heads": 4, "num_kv_heads": 4, "embed_dim": 64,
        "max_seq_len": 256, "intermediate_dim": 128, **adapters,
    }  # fmt: skip
    made["tokenizer"] = {
        "_component_": "torchtune.models.llama2.llama2_tokenizer",
        "path": "tests/assets/m.model",
        "max_seq_len": 64,
    }
    for part in ("checkpointer", "ref_checkpointer"):
        if part in made:
            files = {"checkpoint_dir": "../assets/tiny-2000", "checkpoint_files": ["model.safetensors"]}
            made[part] |= {**files, "model_type": "LLAMA2"}
    kind, data = "alpaca_dataset", "../assets/torchtune/alpaca.json"
    if "dpo" in name:
        kind, data = "stack_exchange_paired_dataset", "../../../assets/torchtune/pairs.json"
    made["dataset"] = {
        "_component_": f"torchtune.datasets.{kind}", "source": "json", "data_files": data, "split": "train",
    }  # fmt: skip
    made |= {"output_dir": "../out/torchtune", "gradient_accumulation_steps": 1}
    (folder / "assets/torchtune" / f"{name}.yaml").write_text(yaml.safe_dump(made))


def _write_idx(path: Path, values: Any) -> None:
    """MNIST's format: a magic number, lengths, bytes."""
    head = struct.pack(">HBB", 0, 8, values.ndim) + struct.pack(f">{values.ndim}I", *values.shape)
    path.write_bytes(head + values.astype(np.uint8).tobytes())


def _said(lines: Iterable[str]) -> str:
    return "".join(f"missing: {line}\n" for line in lines)


def main() -> None:
    """Write into the folder that is given."""
    read = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    read.add_argument("folder", type=Path)
    folder = read.parse_args().folder
    Data(folder).write()
    print(_said(missing(folder)) + f"written: {folder / 'assets'}, and into the repositories")


if __name__ == "__main__":
    main()
