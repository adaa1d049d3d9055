"""The tokenizers made of a vocabulary, against transformers' own of CLIP, and SigLIP's pieces found one by one."""

import re
import string
import unicodedata
from functools import cache

import pytest
import torch
import transformers

from vit_demo.errors import PresetError
from vit_demo.words.tokenizer import MAX_PIECE, tokenizer_of

from .word_models import END, MERGES, START, UNIGRAMS, clip_vocabulary

TEXTS = [
    "a lion", "", "  A  Lion\tcat\n", "it's the lion's", "12 lions, 3 cats!", "ÄÖ é 中文 🦁", "li-on (cat)",
    "lion" * 20, "ﬁ ２", "a_b", "?!",
]  # fmt: skip
CLIP = {"model": {"vocab": clip_vocabulary(), "merges": [list(pair) for pair in MERGES]}}
SCORES = {piece: -1.0 - 0.01 * number for number, piece in enumerate(UNIGRAMS)}
SIGLIP = {"model": {"vocab": [list(pair) for pair in SCORES.items()], "unk_id": 2}}


@pytest.mark.parametrize("length", [3, 8, 77])
def test_clips_is_that_of_transformers(length):
    tokenize = tokenizer_of(CLIP, is_softmax=True, length=length, vocabulary=len(clip_vocabulary()))
    own = transformers.CLIPTokenizer(vocab=clip_vocabulary(), merges=list(MERGES))
    found = tokenize(TEXTS)["input_ids"]
    expected = own(TEXTS, padding="longest", max_length=length, truncation=True, return_tensors="pt")["input_ids"]
    # What stands after the first end token changes nothing: transformers pads with it or with another.
    ends = (expected == clip_vocabulary()[END]).int().argmax(1)
    assert found.shape == expected.shape and found.shape[1] <= length
    for row, wanted, end in zip(found, expected, ends, strict=True):
        assert torch.equal(row[: end + 1], wanted[: end + 1]) and (row[end:] == clip_vocabulary()[END]).all()
        assert row[0] == clip_vocabulary()[START]


def pieces(text: str) -> list[int]:
    """The pieces of a line with the highest sum of scores, found from every place; each strange letter is one."""

    @cache
    def best(start: int) -> tuple[float, tuple[int, ...]]:
        if start == len(text):
            return 0.0, ()
        found = []
        for end in range(start + 1, len(text) + 1):
            piece = text[start:end]
            if piece in SCORES or end == start + 1:
                score, rest = best(end)
                number = UNIGRAMS.index(piece) if piece in SCORES else 2
                found.append((SCORES.get(piece, -100.0) + score, (number, *rest)))
        return max(found)

    return list(best(0)[1])


@pytest.mark.parametrize("length", [2, 8, 64])
def test_siglips_are_the_likeliest_pieces(length):
    tokenize = tokenizer_of(SIGLIP, is_softmax=False, length=length, vocabulary=len(UNIGRAMS))
    found = tokenize(TEXTS)["input_ids"]
    assert found.shape == (len(TEXTS), length)
    for text, row in zip(TEXTS, found, strict=True):
        plain = "".join(c for c in unicodedata.normalize("NFKC", text).lower() if c not in string.punctuation)
        line = "▁".join(re.split(r"\s+", plain.strip()))
        numbers = pieces("▁" + line) if line else []
        joined = [n for i, n in enumerate(numbers) if n != 2 or i == 0 or numbers[i - 1] != 2]  # unknown ones are one
        assert row.tolist() == (joined[: length - 1] + [1] * length)[:length], text


@pytest.mark.parametrize("is_softmax", [True, False])
def test_a_vocabulary_fits_the_text_tower_exactly(is_softmax):
    file, count = (CLIP, len(clip_vocabulary())) if is_softmax else (SIGLIP, len(UNIGRAMS))
    name = "CLIP" if is_softmax else "SigLIP"
    tokenizer_of(file, is_softmax=is_softmax, length=8, vocabulary=count)
    with pytest.raises(PresetError, match=f"no vocabulary of {name}"):
        tokenizer_of(file, is_softmax=is_softmax, length=8, vocabulary=count - 1)


@pytest.mark.parametrize(("length", "is_refused"), [(MAX_PIECE, False), (MAX_PIECE + 1, True)])
def test_a_piece_has_a_longest(length, is_refused):
    file = {"model": {**SIGLIP["model"], "vocab": [*SIGLIP["model"]["vocab"], ["x" * length, -3.0]]}}
    given = {"is_softmax": False, "length": 8, "vocabulary": 99}
    if is_refused:
        with pytest.raises(PresetError, match="no vocabulary of SigLIP"):
            tokenizer_of(file, **given)
    else:
        assert tokenizer_of(file, **given)(["x" * length])["input_ids"].shape == (1, 8)
