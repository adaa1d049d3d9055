"""Makes untrusted text safe to show: one line, no invisible characters, bounded length."""

import unicodedata

from vit_demo.weights.limits import MAX_QUOTE_LENGTH


def sanitize(text: str, length: int) -> str:
    """One line of at most ``length`` characters, without control characters and bidirectional overrides."""
    text = text[: 4 * length]
    if not text.isprintable():
        # Format characters (Cf), such as U+202E, are dropped; line breaks and other controls become spaces.
        visible = (c for c in text if unicodedata.category(c) != "Cf")
        text = "".join(c if c.isprintable() else " " for c in visible)
    text = " ".join(text.split())
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def quote(value: object) -> str:
    """A value of an untrusted file for an error message: strings sanitized and cut, lists and objects only named."""
    if isinstance(value, str):
        return f"'{sanitize(value, MAX_QUOTE_LENGTH)}'"
    if isinstance(value, dict | list | tuple):
        return "an object" if isinstance(value, dict) else "a list"
    names = {None: "null", True: "true", False: "false"}
    return names[value] if value is None or isinstance(value, bool) else sanitize(repr(value), MAX_QUOTE_LENGTH)
