"""The catalogues of the page's languages: in order, with the placeholders of their keys."""

import re
import warnings
from collections import Counter

import pytest

from scripts.translations import FRONTEND, LANGUAGES, page_words, read_language
from vit_demo.web.catalog import method_docs

CODES = sorted(path.stem for path in LANGUAGES.glob("*.json"))
CATEGORIES = {"zero", "one", "two", "few", "many", "other"}
MARKUP = re.compile(r"\{\w+\}|\*")


def test_the_menu_has_the_languages_that_have_a_catalogue() -> None:
    source = (FRONTEND / "shared" / "language.js").read_text(encoding="utf-8")
    (names,) = re.findall(r"export const LANGUAGES = \{(.*?)\}", source)
    assert sorted(re.findall(r"(\w+):", names)) == sorted([*CODES, "en"]) and len(CODES) >= 4
    assert re.findall(r'(\w+): "(.*?)"', names) == list(method_docs.LANGUAGES.items()), "those of the lessons"


@pytest.mark.parametrize("language", CODES)
def test_a_catalogue_is_in_order_and_says_what_it_lacks(language: str) -> None:
    """A language falls back to English, so a text that is missing or no longer used is a warning and not a failure."""
    words, known = page_words(), read_language(language)
    for problem, texts in (("lacks", words - set(known)), ("no longer needs", set(known) - words)):
        if texts:
            warnings.warn(
                f"{language}.json {problem} {len(texts)} texts: python -m scripts.translations {language}", stacklevel=1
            )
    assert list(known) == sorted(known), "in the order of the keys, so that a change is easy to read"


@pytest.mark.parametrize("language", CODES)
def test_placeholders_and_bold_words_are_those_of_the_key(language: str) -> None:
    for key, translation in read_language(language).items():
        is_plural = "|" in key and "{count}" in key
        assert is_plural == isinstance(translation, dict), key
        english = key.split("|")[-1] if is_plural else key
        expected = Counter(MARKUP.findall(english))
        if isinstance(translation, str):
            assert Counter(MARKUP.findall(translation)) == expected and translation.strip(), key
            continue
        assert translation.keys() <= CATEGORIES and "other" in translation, key
        for category, form in translation.items():
            found = Counter(MARKUP.findall(form))
            # "Without one patch." needs no number.
            assert found == expected or (category == "one" and found + Counter(["{count}"]) == expected), key


def test_the_words_of_all_sources_are_found() -> None:
    words = page_words()
    assert {
        "block {block} of {blocks}",  # translate("...") with values
        "New digit",  # HTML
        "Back to class token",  # english("...")
        "Can the colours be trusted?",  # HTML in JavaScript
        "Choose",  # HTML, after an icon
        "Thin pen",  # an attribute
        "Evidence for a class",  # a registry
        "The picture is one plain colour, so the prediction means nothing.",  # a sentence of Python
    } <= words
    assert not {"vit_demo", "PNG", "org/name", "AttnLRP"} & words
    for untrue in (
        *("ransformer think", "mostly low", "some seconds", "nearly black", "from grey", "1 or 3"),
        *("looks there for its answer", "faithfulness rank", "half of the rest", "no extra run"),
        *("one more run", "no direction", "The values need not", "multiples of an even share", "no other way"),
        *("Another way to see it", "to see its evidence", "for most pictures of none", "Remove patches"),
        *(
            "even share",
            "Length of what is added",
            "ink is bright",
            "keeps photos for",
            "maps to 0",
            "correlation with this one",
        ),
        *(
            "sixteenfold",
            "as if it were new",
            "first 20",
            "Rather than",
            "Copy as command",
            "Hidden until",
            "Your digit",
        ),
        *("classes stands out", "it takes … for one", "ewest found, …: now", "Undo all"),
        *("were slow", "tell how many fit", "against … logits", "is unsure: …, …?"),
        *("Show me which", "Again with pixels", "pixel value 0", "place on … pictures", "kinds of map when tested"),
    ):
        assert not [text for text in words if untrue in re.sub(r"\{\w+\}", "…", text.replace("*", ""))], untrue
