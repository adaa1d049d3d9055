"""What any library logs, which may hold texts of visitors: one line without control characters, and not too long."""

import logging
import traceback
from typing import Any

MAX_LINE_LENGTH, MAX_TRACEBACK_LENGTH = 300, 8000
"""Characters of a message, and of the end of a traceback."""


def install() -> None:
    """Makes every logger of this process use ``Record``."""
    logging.setLogRecordFactory(Record)


class Record(logging.LogRecord):
    """A record whose message is one short line, and whose traceback is indented, so that no line of it looks like one.

    Its text is made at once, because a formatter would make another.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        if self.exc_info:
            lines = "".join(traceback.format_exception(*self.exc_info))[-MAX_TRACEBACK_LENGTH:].splitlines()
            self.exc_text = "\n".join(f"  {escaped(line)}" for line in lines)

    def getMessage(self) -> str:
        """The message with its arguments, escaped and cut."""
        return escaped(super().getMessage())


def escaped(text: str) -> str:
    """A text as one line of at most ``MAX_LINE_LENGTH`` characters."""
    line = "".join(one if one.isprintable() else repr(one)[1:-1] for one in text[:MAX_LINE_LENGTH])
    return line + "…" * (len(text) > MAX_LINE_LENGTH)
