"""Language models as published; ``cosim list model`` shows them.

GPT: table 1 of Narayanan et al., SC 2021, arXiv 2104.04473; 175B as in table 2.1 of Brown et al., arXiv
2005.14165, with Megatron's vocabulary; 22B of Korthikanti et al., arXiv 2205.05198. Llama 2: arXiv
2307.09288. Llama 3: table 3 of arXiv 2407.21783, and the released configurations. Mixtral: arXiv 2401.04088
and the released configurations. DeepSeek-V3: section 4.2 of arXiv 2412.19437; V2: section 3.1.2 of arXiv
2405.04434. BERT: arXiv 1810.04805. Mamba-2: arXiv 2405.21060. Nemotron-H: arXiv 2504.03624; Nemotron 3: arXiv
2512.20848 (Nano), the released configurations as NVIDIA's Megatron-LM has them (Super, Ultra).
"""

from __future__ import annotations

from typing import Any

from cosim.models.catalogue.architecture import Experts, Latent, TransformerModel
from cosim.models.catalogue.mamba import Mamba

_MEGATRON = "Narayanan et al., SC 2021, table 1 (arXiv 2104.04473)"


def gpt(
    name: str,
    layers: int,
    hidden: int,
    heads: int,
    source: str = _MEGATRON,
    *,
    ffn: int | None = None,
    vocabulary: int = 51200,
    sequence: int = 2048,
) -> TransformerModel:
    """A GPT as Megatron-LM trains it: learned positions, layer norms, biases, dropout, GeLU, a tied head.

    ``ffn`` is 4 ``hidden`` if omitted.
    """
    return TransformerModel(
        name=name,
        source=source,
        layers=layers,
        hidden=hidden,
        heads=heads,
        ffn=ffn or 4 * hidden,
        gated=False,
        vocabulary=vocabulary,
        sequence=sequence,
        positions=sequence,
        tied=True,
        biases=True,
        norm="layer",
        dropout=True,
    )


def _llama(
    name: str, source: str, layers: int, hidden: int, heads: int, kv: int, ffn: int, **more: Any
) -> TransformerModel:
    return TransformerModel.model_validate(
        {
            "name": name,
            "source": source,
            "layers": layers,
            "hidden": hidden,
            "heads": heads,
            "kv_heads": kv,
            "ffn": ffn,
            "vocabulary": 32000,
            "sequence": 4096,
            **more,
        }
    )


def _bert(name: str, layers: int, hidden: int, heads: int) -> TransformerModel:
    return TransformerModel(
        name=name,
        source="Devlin et al., arXiv 1810.04805, section 3",
        layers=layers,
        hidden=hidden,
        heads=heads,
        ffn=4 * hidden,
        gated=False,
        vocabulary=30522,
        sequence=512,
        positions=512,
        token_types=2,
        tied=True,
        biases=True,
        norm="layer",
        dropout=True,
        final_norm=False,
        causal=False,
        pooler=True,
    )


def _nemotron(
    name: str,
    source: str,
    pattern: str,
    hidden: int,
    heads: int,
    kv: int,
    ffn: int,
    mamba: Mamba,
    **more: Any,
) -> TransformerModel:
    """A hybrid without positions, with MLPs (or experts) of squared ReLU."""
    return TransformerModel.model_validate(
        {
            "name": name,
            "source": source,
            "layers": len(pattern),
            "pattern": pattern,
            "hidden": hidden,
            "heads": heads,
            "kv_heads": kv,
            "head_dim": 128,
            "ffn": ffn,
            "mamba": mamba,
            "gated": False,
            "squared_relu": True,
            "rotary": False,
            "vocabulary": 131072,
            "sequence": 8192,
            **more,
        }
    )


GPT3_1_7B = gpt("GPT-3 1.7B", 24, 2304, 24)
GPT3_3_6B = gpt("GPT-3 3.6B", 30, 3072, 32)
GPT3_7_5B = gpt("GPT-3 7.5B", 36, 4096, 32)
GPT3_18B = gpt("GPT-3 18B", 40, 6144, 48)
GPT3_22B = gpt("GPT-3 22B", 48, 6144, 64, "Korthikanti et al., table 3 (arXiv 2205.05198)")
GPT3_39B = gpt("GPT-3 39B", 48, 8192, 64)
GPT3_76B = gpt("GPT-3 76B", 60, 10240, 80)
GPT3_145B = gpt("GPT-3 145B", 80, 12288, 96)
GPT3_175B = gpt("GPT-3 175B", 96, 12288, 96, "Brown et al., table 2.1 (arXiv 2005.14165)")
GPT3_310B = gpt("GPT-3 310B", 96, 16384, 128)
GPT3_530B = gpt("GPT-3 530B", 105, 20480, 128)
GPT3_1T = gpt("GPT-3 1T", 128, 25600, 160)

_LLAMA2 = "Touvron et al., arXiv 2307.09288, and the released configuration"
LLAMA2_7B = _llama("Llama 2 7B", _LLAMA2, 32, 4096, 32, 32, 11008)
LLAMA2_13B = _llama("Llama 2 13B", _LLAMA2, 40, 5120, 40, 40, 13824)
LLAMA2_70B = _llama("Llama 2 70B", _LLAMA2, 80, 8192, 64, 8, 28672)

_LLAMA3 = "Llama Team, table 3 (arXiv 2407.21783)"
_WORDS = {"vocabulary": 128256, "sequence": 8192}
LLAMA3_8B = _llama("Llama 3 8B", _LLAMA3, 32, 4096, 32, 8, 14336, **_WORDS)
LLAMA3_70B = _llama("Llama 3 70B", _LLAMA3, 80, 8192, 64, 8, 28672, **_WORDS)
LLAMA3_405B = _llama("Llama 3 405B", _LLAMA3, 126, 16384, 128, 8, 53248, **_WORDS)

_MIXTRAL = "Jiang et al., arXiv 2401.04088, and the released configuration"
MIXTRAL_8X7B = _llama(
    "Mixtral 8x7B", _MIXTRAL, 32, 4096, 32, 8, 14336, experts=Experts(num=8, top_k=2, ffn=14336)
)
MIXTRAL_8X22B = _llama(
    "Mixtral 8x22B",
    "the released configuration, Mixtral-8x22B-v0.1",
    56, 6144, 48, 8, 16384,
    vocabulary=32768,
    experts=Experts(num=8, top_k=2, ffn=16384),
)  # fmt: skip

DEEPSEEK_V2 = _llama(
    "DeepSeek-V2",
    "DeepSeek-AI, section 3.1.2 (arXiv 2405.04434)",
    60, 5120, 128, 128, 12288,
    vocabulary=102400,
    experts=Experts(num=160, top_k=6, ffn=1536, shared=2, first_dense=1),
    latent=Latent(query_rank=1536, key_value_rank=512, nope=128, rope=64, value=128),
)  # fmt: skip
DEEPSEEK_V3 = _llama(
    "DeepSeek-V3",
    "DeepSeek-AI, section 4.2 (arXiv 2412.19437)",
    61, 7168, 128, 128, 18432,
    vocabulary=129280,
    experts=Experts(num=256, top_k=8, ffn=2048, shared=1, first_dense=3),
    latent=Latent(query_rank=1536, key_value_rank=512, nope=128, rope=64, value=128),
)  # fmt: skip

BERT_BASE = _bert("BERT base", 12, 768, 12)
BERT_LARGE = _bert("BERT large", 24, 1024, 16)

MAMBA2_2_7B = TransformerModel(
    name="Mamba-2 2.7B",
    source="Dao and Gu (arXiv 2405.21060), and the released configuration",
    layers=64,
    pattern=64 * "M",
    hidden=2560,
    heads=0,
    ffn=0,
    mamba=Mamba(state=128, heads=80, groups=1, chunk=256),
    vocabulary=50288,
    sequence=2048,
    tied=True,
)

_NEMOTRON_H = "Blakeman et al. (arXiv 2504.03624), and the released configuration"
NEMOTRON_H_8B = _nemotron(
    "Nemotron-H 8B",
    _NEMOTRON_H,
    "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-",
    4096, 32, 8, 21504,
    Mamba(state=128, heads=128),
)  # fmt: skip
NEMOTRON_H_56B = _nemotron(
    "Nemotron-H 56B",
    _NEMOTRON_H,
    "M-M-M-M*-" + 9 * "M-M-M-M-M*-" + "M-M-M-M-M-",
    8192, 64, 8, 32768,
    Mamba(state=256, heads=256),
)  # fmt: skip
NEMOTRON_3_NANO = _nemotron(
    "Nemotron 3 Nano",
    "NVIDIA (arXiv 2512.20848), and the released configuration",
    "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME",
    2688, 32, 2, 0,
    Mamba(state=128, heads=64),
    experts=Experts(num=128, top_k=6, ffn=1856, shared=1, shared_ffn=3712),
)  # fmt: skip
_AHEAD = {"ahead_pattern": "*E", "ahead_shared": True}
NEMOTRON_3_SUPER = _nemotron(
    "Nemotron 3 Super",
    "the released configuration, NVIDIA-Nemotron-3-Super-120B-A12B",
    "MEMEMEM*" + 2 * "EMEMEMEM*" + 4 * "EMEMEMEMEM*" + "EMEMEMEM*EMEMEMEME",
    4096, 32, 2, 0,
    Mamba(state=128, heads=128),
    experts=Experts(num=512, top_k=22, ffn=2688, shared=1, shared_ffn=5376, latent=1024),
    **_AHEAD,
)  # fmt: skip
NEMOTRON_3_ULTRA = _nemotron(
    "Nemotron 3 Ultra",
    "the released configuration, NVIDIA-Nemotron-3-Ultra-550B-A55B",
    "MEMEMEM*" + 3 * "EMEMEM*EMEMEMEM*EMEMEMEM*" + "EMEMEM*EMEMEMEM*EMEMEMEME",
    8192, 64, 2, 0,
    Mamba(state=128, heads=256),
    experts=Experts(num=512, top_k=22, ffn=5120, shared=1, shared_ffn=10240, latent=2048),
    **_AHEAD,
)  # fmt: skip
