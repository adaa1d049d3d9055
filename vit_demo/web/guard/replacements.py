"""One state for all sessions of the API; ``docs/architecture.md`` lists what else of Gradio is replaced."""

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
