"""The tokenizers of CLIP and SigLIP, made of the vocabulary in a ``tokenizer.json``.

Nothing else of the file is used: the steps before and after are those that the models were trained with, so that no
pattern of a stranger runs.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from vit_demo.errors import PresetError
from vit_demo.words.classifier import Tokenize

UNUSABLE = "its tokenizer.json holds no vocabulary of {0}."
MAX_PIECE = 256  # characters of a piece of the vocabulary; the longest of CLIP has 128

_PUNCTUATION = str.maketrans("", "", string.punctuation)


def tokenizer_of(file: Mapping[str, Any], *, is_softmax: bool, length: int, vocabulary: int) -> Tokenize:
    """The tokenizer of a text tower that takes ``length`` tokens of a ``vocabulary``, from its ``tokenizer.json``.

    It is CLIP's, byte-level BPE, if ``is_softmax``, else SigLIP's, unigrams of SentencePiece. ``PresetError`` if the
    file holds no such vocabulary, or one that the text tower does not have.
    """
    found = file.get("model")
    model: Mapping[str, Any] = found if isinstance(found, dict) else {}
    try:
        return _clip(model, length, vocabulary) if is_softmax else _siglip(model, length, vocabulary)
    except PresetError:
        raise
    except Exception as error:  # whatever the library raises for a stranger's vocabulary
        raise PresetError(UNUSABLE, "CLIP" if is_softmax else "SigLIP") from error


def _clip(model: Mapping[str, Any], length: int, vocabulary: int) -> Tokenize:
    """Lower case, words and signs, byte-level BPE between a start and an end token (Radford et al., 2021)."""
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

    start, end = "<|startoftext|>", "<|endoftext|>"
    ids, merges = model["vocab"], [pair if isinstance(pair, list) else pair.split(" ") for pair in model["merges"]]
    _check(ids, ids.values(), vocabulary, (start, end), "CLIP")
    pairs = [(str(left), str(right)) for left, right in merges]
    core = Tokenizer(models.BPE(ids, pairs, unk_token=end, end_of_word_suffix="</w>"))
    core.normalizer = normalizers.Sequence(
        [normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()]
    )
    parts = Regex(r"'s|'t|'re|'ve|'m|'ll|'d|\p{L}+|\p{N}|[^\s\p{L}\p{N}]+")
    core.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(parts, "removed", invert=True), pre_tokenizers.ByteLevel(False, use_regex=False)]
    )

    def tokenize(texts: list[str]) -> dict[str, Tensor]:
        rows = [[ids[start], *core.encode(text).ids[: length - 2], ids[end]] for text in texts]
        # What follows the end changes nothing: attention is causal, and the end token's output is the text's vector.
        return {"input_ids": _padded(rows, max(map(len, rows)), ids[end])}

    return tokenize


def _siglip(model: Mapping[str, Any], length: int, vocabulary: int) -> Tokenize:
    """Lower case without punctuation, unigrams, an end token, always the whole length (Zhai et al., 2023)."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    end = "</s>"
    pieces = [(str(piece), float(score)) for piece, score in model["vocab"]]
    ids = {piece: number for number, (piece, _) in enumerate(pieces)}
    _check(ids, ids.values(), vocabulary, (end,), "SigLIP")
    core = Tokenizer(models.Unigram(pieces, int(model["unk_id"]), False))
    core.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always", split=False)

    def tokenize(texts: list[str]) -> dict[str, Tensor]:
        plain = [unicodedata.normalize("NFKC", text).lower().translate(_PUNCTUATION) for text in texts]
        lines = [re.sub(r"\s+", " ", text).strip() for text in plain]
        rows = [[*(core.encode(line).ids if line else [])[: length - 1], ids[end]] for line in lines]
        return {"input_ids": _padded(rows, length, ids[end])}

    return tokenize


def _check(pieces: Mapping[str, Any], numbers: Any, vocabulary: int, wanted: Sequence[str], name: str) -> None:
    """Refuses a vocabulary that is none, or that numbers tokens which the text tower does not have."""
    whole = all(type(number) is int and 0 <= number < vocabulary for number in numbers)
    if not whole or not all(piece in pieces for piece in wanted) or any(len(piece) > MAX_PIECE for piece in pieces):
        raise PresetError(UNUSABLE, name)


def _padded(rows: list[list[int]], length: int, padding: int) -> Tensor:
    return torch.tensor([row + [padding] * (length - len(row)) for row in rows])
