"""Log records of any library, which may contain visitors' texts, as one short line without control characters."""

import asyncio
import logging
import traceback
from typing import Any

import cachetools

MAX_LINE_LENGTH, MAX_TRACEBACK_LENGTH = 300, 8000
"""Characters of a message, and of the end of a traceback."""

_accept_errors: cachetools.TTLCache[str, bool] = cachetools.TTLCache(1, 60.0)


def handle_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """An event loop's exception handler, which logs once a minute that no connection can be accepted.

    asyncio would log it with a traceback up to 2,048 times a second.
    """
    message = context["message"]
    if message not in _accept_errors:
        loop.default_exception_handler(context)
    if message.startswith("socket.accept()"):
        _accept_errors[message] = True


def install() -> None:
    """Makes every logger of this process use ``Record``."""
    logging.setLogRecordFactory(Record)


class Record(logging.LogRecord):
    """A record whose message is one short line, and whose traceback is indented so that no line looks like a message.

    The traceback is formatted here, because a formatter would use the original text.
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
    line = "".join(char if char.isprintable() else repr(char)[1:-1] for char in text[: MAX_LINE_LENGTH + 1])
    return line if len(line) <= MAX_LINE_LENGTH else line[: MAX_LINE_LENGTH - 1] + "…"
