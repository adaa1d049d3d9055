"""Replacements of parts of Gradio; ``docs/architecture.md`` lists all of them."""

from pathlib import Path
from typing import Any
from weakref import WeakSet

import gradio as gr
import gradio.route_utils
import gradio.routes
from gradio import component_meta
from gradio.route_utils import GradioMultiPartParser
from gradio.state_holder import SessionState, StateHolder
from starlette.formparsers import MultiPartException

from vit_demo.web.guard import uploads

component_meta.create_or_modify_pyi = lambda *_: None  # otherwise Gradio writes stub files into this package

_pages: WeakSet[gr.Blocks] = WeakSet()


def install(page: gr.Blocks) -> None:
    """Installs the replacements for a page, before its application is created; other pages keep Gradio's state."""
    _pages.add(page)
    gradio.routes.DEFAULT_TEMP_DIR = str(uploads.folder())  # otherwise Gradio leaves a folder in the temporary one
    gradio.routes.StateHolder = OneState  # type: ignore[misc]
    gradio.route_utils.GradioMultiPartParser = OneFile  # type: ignore[misc]


class OneState(StateHolder):
    """One state for all sessions, because no component of the page has a value on the server.

    Gradio describes every component anew for each session, which takes the event loop 20 milliseconds.
    """

    def __getitem__(self, session_id: str) -> SessionState:
        return super().__getitem__("" if self.blocks in _pages else session_id)


class OneFile(GradioMultiPartParser):
    """Gradio's parser of uploads, limited to one file; Gradio keeps other parts in memory, without a limit."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options | {"max_fields": 0, "max_files": 1})
        self._has_ended = False

    def on_end(self) -> None:
        """Called at the last boundary."""
        self._has_ended = True

    async def parse(self) -> Any:
        """Parses the upload; if that fails, for instance because the disk is full, its files are deleted."""
        try:
            form = await super().parse()
            if not self._has_ended:
                raise MultiPartException("The upload has no end: send it again.")
            return form
        except BaseException:
            for file in self._files_to_close_on_error:
                file.close()
                Path(file.name).unlink(missing_ok=True)
            raise
