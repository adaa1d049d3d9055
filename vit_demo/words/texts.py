"""Which words can be classes, and the texts that stand for them."""

from collections.abc import Sequence
from typing import Any
from unicodedata import category

from vit_demo.errors import LabelError

MAX_WORDS = 1000
MAX_CHARACTERS = 300  # characters of one word, or one sentence
DEFAULT_WORDS = ("a lion", "a cat", "a rock")  # the classes of a network of pictures and text until others are given
NO_WORDS = "(no words)"  # the class beside a single word where probabilities compare classes; its text is empty
NOT_SHOWN = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufffe\uffff")
"""Characters that turn the text around them, and two that no XML may hold."""
AS_TYPED = "{}"  # the template that leaves words as they are


def check_words(words: Sequence[str], *, is_softmax: bool) -> tuple[str, ...]:
    """The classes for some words: as they are; a single one of a softmax is compared with ``NO_WORDS``.

    ``LabelError`` if there are none or too many, or one is empty, too long or there twice.
    """
    if isinstance(words, str) or not isinstance(words, Sequence) or not all(map(is_word, words)):
        raise LabelError("Each word must be one line of at most {0} characters, and not empty.", MAX_CHARACTERS)
    if not 0 < len(words) <= MAX_WORDS or len(set(words)) < len(words):
        raise LabelError("Give 1 to {0} different words: this network compares them.", f"{MAX_WORDS:,}")
    return (*words, NO_WORDS) if is_softmax and len(words) == 1 and words[0] != NO_WORDS else tuple(words)


def is_word(text: Any, most: int = MAX_CHARACTERS) -> bool:
    """Whether a text is one line of 1 to so many characters that can be shown."""
    # Not by `isprintable`, which refuses what joins emoji, and marks of right-to-left text.
    kinds = [category(c) for c in text] if isinstance(text, str) and len(text) <= most else []
    is_seen = any(kind[0] in "LNPS" for kind in kinds)  # not by marks and spaces alone
    return is_seen and not ({"Cc", "Cs", "Zl", "Zp"} & {*kinds} or NOT_SHOWN & {*text})


def split_words(text: str) -> list[str]:
    """Words between commas, each once; empty ones are left out."""
    return list(dict.fromkeys(word for part in text.split(",") if (word := part.strip())))


def check_template(template: str) -> str:
    """A template as it is; ``LabelError`` if it does not hold ``{}``, for the word, once, or is too long."""
    if not isinstance(template, str) or template.count(AS_TYPED) != 1 or len(template) > MAX_CHARACTERS:
        raise LabelError(f'The template must hold {{}} once, as in "a photo of {{}}", in {MAX_CHARACTERS} characters.')
    return template


def texts_of(words: Sequence[str], template: str = AS_TYPED) -> list[str]:
    """The text of each word."""
    return ["" if word == NO_WORDS else template.replace(AS_TYPED, word) for word in words]
