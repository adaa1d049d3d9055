"""Tiny networks of pictures and text with random weights and vocabularies, as transformers would publish them."""

import json
from functools import cache
from typing import Any

import torch
import transformers
from safetensors.torch import save
from tokenizers import pre_tokenizers
from torch import nn

START, END = "<|startoftext|>", "<|endoftext|>"
MERGES = [("l", "i"), ("o", "n</w>"), ("li", "on</w>"), ("c", "a"), ("ca", "t</w>")]
UNIGRAMS = ["<pad>", "</s>", "<unk>", "▁a", "▁lion", "▁cat", "▁", "c", "a", "t", "l", "i", "o", "n", "s"]
LENGTH = 8


def clip_vocabulary() -> dict[str, int]:
    """All bytes, those that end a word, what the merges make, and the two special tokens, which are the last."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    pieces = [*letters, *(letter + "</w>" for letter in letters), *("".join(pair) for pair in MERGES), START, END]
    return {piece: number for number, piece in enumerate(pieces)}


def word_model(kind: str, image_size: int = 32, patch_size: int = 8) -> nn.Module:
    """A tiny ``CLIPModel`` or ``SiglipModel``; ``kind`` is ``"clip"`` or ``"siglip"``."""
    shape = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 32}
    count = len(clip_vocabulary()) if kind == "clip" else len(UNIGRAMS)
    tokens = {"bos_token_id": count - 2, "eos_token_id": count - 1} if kind == "clip" else {"eos_token_id": 1}
    text = shape | {"vocab_size": count, "max_position_embeddings": LENGTH, "pad_token_id": 1, **tokens}
    name = {"clip": "CLIP", "siglip": "Siglip"}[kind]
    config = getattr(transformers, f"{name}Config")(
        text_config=text, vision_config=shape | {"image_size": image_size, "patch_size": patch_size}
    )
    torch.manual_seed(0)
    model = getattr(transformers, f"{name}Model")(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.3)
    return model


def word_files(kind: str, **sizes: int) -> dict[str, bytes]:
    """The files of its repository."""
    return dict(_word_files(kind, **sizes))


@cache
def _word_files(kind: str, **sizes: int) -> dict[str, bytes]:
    model: Any = word_model(kind, **sizes)
    merges = {"vocab": clip_vocabulary(), "merges": [list(pair) for pair in MERGES]}
    scores = {"unk_id": 2, "vocab": [[piece, -1.0 - 0.01 * number] for number, piece in enumerate(UNIGRAMS)]}
    return {
        "config.json": json.dumps(model.config.to_dict()).encode(),
        "tokenizer.json": json.dumps({"model": merges if kind == "clip" else scores}).encode(),
        "model.safetensors": save({name: tensor.contiguous() for name, tensor in model.state_dict().items()}),
    }


def text_tokens(kind: str, texts: list[str]) -> torch.Tensor:
    """The tokens of plain texts, by transformers' own tokenizer of CLIP, and for SigLIP by hand."""
    if kind == "clip":
        tokenizer = transformers.CLIPTokenizer(vocab=clip_vocabulary(), merges=list(MERGES))
        return tokenizer(texts, padding="max_length", max_length=LENGTH, truncation=True, return_tensors="pt")[
            "input_ids"
        ]
    rows = []
    for text in texts:
        ids = [UNIGRAMS.index("▁" + word) for word in text.split()]
        rows.append((ids + [1] * LENGTH)[:LENGTH])
    return torch.tensor(rows)
