"""Which words can be classes, at each bound, and the texts that stand for them."""

import pytest

from vit_demo.errors import LabelError
from vit_demo.words.texts import MAX_CHARACTERS, MAX_WORDS, check_template, check_words, split_words, texts_of

LONGEST = "x" * MAX_CHARACTERS


@pytest.mark.parametrize("is_softmax", [True, False])
def test_words_within_the_bounds_are_classes_as_they_are(is_softmax):
    for words in (["a lion", LONGEST], [f"w{i}" for i in range(MAX_WORDS)], ("שלום\u200f", "👨\u200d👩", " a ")):
        assert check_words(words, is_softmax=is_softmax) == tuple(words)


@pytest.mark.parametrize(
    "words",
    [[], [f"w{i}" for i in range(MAX_WORDS + 1)], ["a", "b", "a"], ["a", LONGEST + "x"], ["a", " \t"], ["a", ""],
     ["a", "b\nc"], ["a", "\ud800"], ["a", 3], "ab", {"a", "b"}, 3, None],
)  # fmt: skip
def test_words_beyond_them_are_none(words):
    with pytest.raises(LabelError):
        check_words(words, is_softmax=False)


def test_only_a_single_word_of_a_softmax_gets_another_beside_it():
    assert check_words(["lion"], is_softmax=True) == ("lion", "(no words)")
    assert check_words(["lion"], is_softmax=False) == ("lion",)
    assert check_words(["(no words)"], is_softmax=True) == ("(no words)",)


def test_words_stand_between_commas_each_once():
    assert split_words(" a lion,, cat ,a lion,\tb c\n") == ["a lion", "cat", "b c"] and split_words(" , ") == []


def test_a_template_holds_the_word_once_and_the_absent_word_has_no_text():
    longest = "{}" + "x" * (MAX_CHARACTERS - 2)
    assert check_template(longest) == longest and check_template("{}") == "{}"
    for template in (longest + "x", "a photo", "{} {}", "", 3, None):
        with pytest.raises(LabelError, match="a photo of"):
            check_template(template)
    assert texts_of(["lion", "(no words)"], "a {}!") == ["a lion!", ""] and texts_of(("cat",)) == ["cat"]
