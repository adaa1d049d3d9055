"""The function by which a component's JavaScript calls Python."""

from collections.abc import Awaitable, Callable
from typing import Any

from starlette.responses import Response

from vit_demo.web.packing import HEADERS

OnRequest = Callable[[Any], Awaitable[bytes]]
"""From the fields of a request to its reply, as ``packing.pack`` makes it."""


def server_function(on_request: OnRequest) -> Callable[[Any], Awaitable[Response]]:
    """A separate function for each component, because Gradio marks the function it gets.

    Its name is that in JavaScript. Gradio sends a response as it is.
    """

    async def request(fields: Any) -> Response:
        return Response(await on_request(fields), media_type="application/json", headers=HEADERS)

    return request
