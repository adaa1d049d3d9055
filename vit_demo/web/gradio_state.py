"""What Gradio keeps for its visitors: nothing of one that another would see, and nothing that costs time for each."""

from __future__ import annotations

from collections import OrderedDict
from contextvars import ContextVar
from pathlib import Path
from typing import Any
from weakref import WeakSet

import gradio as gr
import gradio.route_utils
import gradio.routes
from gradio.route_utils import GradioMultiPartParser
from gradio.routes import App
from gradio.state_holder import SessionState, StateHolder
from starlette.datastructures import Headers

ADDRESS_HEADERS = ("host", "x-forwarded-host", "x-forwarded-proto", "x-gradio-server")
"""From what Gradio concludes at which address a visitor sees the page."""

MAX_ADDRESSES = 16

_address: ContextVar[tuple[str | None, ...]] = ContextVar("address", default=())
_pages: WeakSet[gr.Blocks] = WeakSet()


def install(page: gr.Blocks) -> None:
    """Replaces Gradio's collections for a page, before its application is created; pages of others keep theirs."""
    _pages.add(page)
    App.api_info = property(_get_info, _set_info)  # type: ignore[assignment]
    gradio.routes.StateHolder = OneState  # type: ignore[misc]
    gradio.route_utils.GradioMultiPartParser = FilesOnly  # type: ignore[misc]


def remember_address(headers: Headers) -> None:
    """Says for which address the API is described; Gradio would keep the description made for its first caller."""
    _address.set(tuple(headers.get(name) for name in ADDRESS_HEADERS))


def _infos(app: App) -> OrderedDict[tuple[str | None, ...], Any]:
    return app.__dict__.setdefault("_infos", OrderedDict())


def _get_info(app: App) -> Any:
    return _infos(app).get(_address.get())


def _set_info(app: App, info: Any) -> None:
    found = _infos(app)
    found[_address.get()] = info
    if len(found) > MAX_ADDRESSES:
        found.popitem(last=False)


class OneState(StateHolder):
    """One state for all sessions: no component of the page has a value on the server.

    Gradio's own would describe every component anew for each new session, which takes the event loop 20 milliseconds.
    """

    def __getitem__(self, session_id: str) -> SessionState:
        return super().__getitem__("" if self.blocks in _pages else session_id)


class FilesOnly(GradioMultiPartParser):
    """Gradio's parser of uploads, which refuses parts that are no files: it would keep them in memory."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options | {"max_fields": 0})

    async def parse(self) -> Any:
        """Gradio's method; of an upload that fails, also of a full disk, nothing is left."""
        try:
            return await super().parse()
        except BaseException:
            for file in self._files_to_close_on_error:
                file.close()
                Path(file.name).unlink(missing_ok=True)
            raise
