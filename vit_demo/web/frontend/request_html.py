"""The base of the page's components: HTML whose JavaScript sends requests to Python."""

from collections.abc import Awaitable, Callable
from typing import Any

import gradio as gr
from starlette.responses import Response

import vit_demo.web.guard.replacements  # noqa: F401
from vit_demo.web.requests.packing import HEADERS

OnRequest = Callable[[Any], Awaitable[bytes]]
"""From the fields of a request to its reply, as ``packing.pack`` makes it."""


class RequestHTML(gr.HTML):
    """``gr.HTML`` without Gradio's own style, with ``server.request(fields)`` in its JavaScript."""

    def __init__(self, *, on_request: OnRequest, **kwargs: Any) -> None:
        """Makes the component.

        Args:
            on_request: Handles a request of the component.
            **kwargs: What `gr.HTML` takes besides.
        """

        # One function for each component, because Gradio marks the function it gets. Its name is that in JavaScript.
        async def request(fields: Any) -> Response:
            return Response(await on_request(fields), media_type="application/json", headers=HEADERS)

        super().__init__(server_functions=[request], apply_default_css=False, **kwargs)

    def get_config(self) -> dict[str, Any]:  # type: ignore[override]
        """Returns the properties for the browser, without the server functions, which are not JSON."""
        config = super().get_config()
        for name in config["server_fns"]:
            config.pop(name, None)
        return config
