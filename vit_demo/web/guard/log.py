"""Log records of any library, which may contain visitors' texts, as one short line without control characters."""

import asyncio
import logging
import traceback
from contextvars import ContextVar
from typing import Any

import cachetools
import orjson
from uvicorn.config import LOGGING_CONFIG

from vit_demo.web import settings

MAX_LINE_LENGTH, MAX_TRACEBACK_LENGTH = 300, 8000  # characters of a message, and of the end of a traceback

_recent: cachetools.TTLCache[str, bool] = cachetools.TTLCache(64, 60.0)


def is_first(record: logging.LogRecord) -> bool:
    """A filter of records: a warning passes once a minute, since anyone can send a thousand bad requests a second."""
    is_known = record.msg in _recent
    if record.levelno == logging.WARNING:
        _recent[str(record.msg)] = True
    return not is_known


def handle_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """An event loop's exception handler, which logs once a minute that no connection can be accepted.

    asyncio would log it with a traceback up to 2,048 times a second.
    """
    message = context["message"]
    if message not in _recent:
        loop.default_exception_handler(context)
    if message.startswith("socket.accept()"):
        _recent[message] = True


request_id: ContextVar[str] = ContextVar("the request that is handled here, or whose job runs here", default="")


def install() -> None:
    """Makes every logger of this process use ``Record``, and ``JsonLines`` if that is wanted."""
    logging.setLogRecordFactory(Record)
    logging.getLogger("uvicorn.error").addFilter(is_first)
    if settings.logs_json():
        logging.basicConfig(force=True)
        logging.getLogger().handlers[0].setFormatter(JsonLines())
        LOGGING_CONFIG["formatters"]["default"] = {"()": JsonLines}  # uvicorn's own
        logging.getLogger("vit_demo.web.guard.metrics").setLevel(logging.INFO)


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


class JsonLines(logging.Formatter):
    """A record as one line of JSON, with the id of its request and its ``fields``, if it has any."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        line = {"time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"), "level": record.levelname}
        line |= {"request": request_id.get(), "message": record.getMessage()} | getattr(record, "fields", {})
        line = {name: escaped(value) if isinstance(value, str) else value for name, value in line.items()}
        return orjson.dumps(line | ({"traceback": record.exc_text} if record.exc_text else {})).decode()


def escaped(text: str) -> str:
    """A text as one line of at most ``MAX_LINE_LENGTH`` characters."""
    line = "".join(char if char.isprintable() else repr(char)[1:-1] for char in text[: MAX_LINE_LENGTH + 1])
    return line if len(line) <= MAX_LINE_LENGTH else line[: MAX_LINE_LENGTH - 1] + "…"
