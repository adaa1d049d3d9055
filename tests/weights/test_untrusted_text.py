import pytest

from vit_demo.weights.untrusted_text import quote, sanitize


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("tabby cat", "tabby cat"),
        ("  a \t\n\r\x00 b\u2028c ", "a b c"),
        ("abc\u202etxt.exe\u2066", "abctxt.exe"),
        ("zero\u200bwidth\ufeff", "zerowidth"),
        ("\ud800\udfff", ""),
        ("naïve 猫 🐈", "naïve 猫 🐈"),
        ("\x1b[31mred", "[31mred"),
        ("x" * 101, "x" * 99 + "…"),
        ("x" * 100, "x" * 100),
        ("\n" * 10**6, ""),
    ],
)
def test_text_becomes_one_short_visible_line(text, shown):
    assert sanitize(text, 100) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("a\nb", "'a b'"),
        (None, "null"),
        (True, "true"),
        (1, "1"),
        (2.5, "2.5"),
        ([1] * 10**6, "a list"),
        ({}, "an object"),
    ],
)
def test_values_in_error_messages(value, shown):
    assert quote(value) == shown


def test_quotes_are_short():
    assert len(quote("x" * 10**6)) <= 82 and len(quote(10**4000)) <= 80
