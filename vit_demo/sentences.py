"""Sentences with values. The page translates them: it needs to know where the values are."""

FIRST, LAST = "\u2068", "\u2069"  # around a value that is sent to the page: Unicode's unseen marks of foreign words


class Sentence(str):
    """An English text as it is read; ``marked`` is the same with its values between ``FIRST`` and ``LAST``."""

    marked: str

    def __new__(cls, marked: str) -> "Sentence":
        """``marked`` may have no values."""
        text = super().__new__(cls, marked.replace(FIRST, "").replace(LAST, ""))
        text.marked = marked
        return text


def sentence(template: str, *values: object) -> Sentence:
    """``template.format(*values)``; the template is the key of its translations."""
    return Sentence(template.format(*(f"{FIRST}{value}{LAST}" for value in values)))


def joined(*texts: str) -> Sentence:
    """Texts as one; empty ones are left out."""
    return Sentence(" ".join(marked(text) for text in texts if text))


def marked(text: str) -> str:
    """A text as it is sent to the page."""
    return text.marked if isinstance(text, Sentence) else text
