"""The function by which a component's JavaScript calls Python."""

from collections.abc import Awaitable, Callable
from typing import Any

Reply = dict[str, Any]


def server_function(on_request: Callable[[Any], Awaitable[Reply]]) -> Callable[[Any], Awaitable[Reply]]:
    """A separate function for each component, because Gradio marks the function it gets.

    Its name is that in JavaScript.
    """

    async def request(fields: Any) -> Reply:
        return await on_request(fields)

    return request
