"""Gradio's state of sessions and its errors, replaced; ``docs/architecture.md`` lists what else of Gradio is."""

from typing import Any
from weakref import WeakSet

import gradio as gr
import gradio.routes
from gradio.state_holder import SessionState, StateHolder

_pages: WeakSet[gr.Blocks] = WeakSet()


def install(page: gr.Blocks) -> None:
    """Gives a page one state, before its application is created; other pages keep Gradio's."""
    _pages.add(page)
    gradio.routes.StateHolder = OneState  # type: ignore[misc]


class OneState(StateHolder):
    """One state for all sessions, because no component of the page has a value on the server.

    Gradio describes every component anew for each session, which takes the event loop 6 milliseconds.
    """

    def __getitem__(self, session_id: str) -> SessionState:
        return super().__getitem__("" if self.blocks in _pages else session_id)


class SafeBlocks(gr.Blocks):
    """``gr.Blocks`` with error messages for visitors."""

    async def preprocess_data(self, block_fn: Any, inputs: list[Any], *arguments: Any, **options: Any) -> list[Any]:
        """Gives inputs left out at the end their defaults; ``gr.Error`` for inputs that do not match the endpoint."""
        try:
            declared = block_fn.inputs
            if len(inputs) > len(declared):
                raise ValueError("too many inputs")
            # An endpoint itself refuses a missing value that has no default.
            left_out = [component.value for component in declared[len(inputs) :]]
            return await super().preprocess_data(block_fn, [*inputs, *left_out], *arguments, **options)
        except gr.Error:
            raise
        except Exception as error:
            message = "These inputs do not match the endpoint: see /gradio_api/info for their number and types."
            raise gr.Error(message, print_exception=False) from error

    async def postprocess_data(self, *arguments: Any, **options: Any) -> list[Any]:
        """Raises ``gr.Error`` for a picture that cannot be stored."""
        try:
            return await super().postprocess_data(*arguments, **options)
        except Exception as error:
            if not isinstance(error.__cause__, OSError):
                raise
            message = "The picture could not be stored, because the server’s disk is full: try again later."
            raise gr.Error(message, print_exception=False) from error
