"""Text that somebody else wrote, made fit to show: one line, no invisible characters, not too long."""

from __future__ import annotations

import unicodedata

from vit_demo.weights.limits import MAX_QUOTE


def clean(text: str, length: int) -> str:
    """One line of at most ``length`` characters, without control characters and marks that reverse its direction."""
    text = text[: 4 * length]
    if not text.isprintable():
        # Format characters (Cf), such as U+202E, are dropped; line breaks and other controls part words.
        visible = (c for c in text if unicodedata.category(c) != "Cf")
        text = "".join(c if c.isprintable() else " " for c in visible)
    text = " ".join(text.split())
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def quoted(value: object) -> str:
    """A value from somebody else's file as a sentence quotes it: text cleaned and cut, anything nested only named."""
    if isinstance(value, str):
        return f"'{clean(value, MAX_QUOTE)}'"
    if isinstance(value, dict | list | tuple):
        return "an object" if isinstance(value, dict) else "a list"
    names = {None: "null", True: "true", False: "false"}
    return names[value] if value is None or isinstance(value, bool) else clean(repr(value), MAX_QUOTE)
