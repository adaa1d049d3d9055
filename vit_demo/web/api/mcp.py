"""The endpoints as tools of the Model Context Protocol, where the ``mcp`` extra is installed.

Gradio makes a tool of each endpoint. Only the transport of pictures and numbers differs here: a picture is a data URL
in the call itself, so that no file and no URL is read by the server; numbers are returned as JSON.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable
from contextlib import ExitStack
from functools import cached_property
from secrets import token_hex
from typing import TYPE_CHECKING, Any, TypeVar

import gradio.mcp
from gradio.mcp import GradioMCPServer

from vit_demo.errors import InputError
from vit_demo.version import __version__
from vit_demo.web.guard.bodies import MAX_EVENT_BYTES
from vit_demo.web.guard.headers import client_address, on_behalf_of
from vit_demo.web.guard.visitor import streams

if TYPE_CHECKING:
    from gradio.blocks import BlockFunction
    from mcp.server import Server

MAX_TOOL_CALLS, MAX_FIRST_CALLS, MAX_TOOL_CALLS_OF_ONE = 24, 40, 8
"""MCP calls under way at once: in all; until which the first of an address has a place; and from one address."""

TOOL_SECONDS = 300.0  # longest time of an MCP call

T = TypeVar("T")

METHODS = ("InitializeRequest", "PingRequest", "ListToolsRequest", "CallToolRequest")
"""The requests that are answered. Prompts and resources would call the same functions without the limits of tools."""

PICTURE = (
    f"A data URL, such as data:image/jpeg;base64,..., of at most {MAX_EVENT_BYTES // 1000} kB. URLs are not fetched: "
    "reduce a larger picture first; 1,000 pixels a side are plenty."
)


def install() -> bool:
    """Replaces Gradio's MCP server by ``ToolServer``; False if the ``mcp`` extra is not installed."""
    try:
        import mcp  # noqa: F401
    except ImportError:
        return False
    gradio.mcp.GradioMCPServer = ToolServer  # type: ignore[misc]  # Gradio looks it up by this name
    logging.getLogger("mcp.server.lowlevel.server").setLevel(logging.ERROR)  # it warns of each unknown name of a tool
    return True


class ToolServer(GradioMCPServer):
    """Gradio's MCP server, with pictures sent as data URLs and results as JSON."""

    @property
    def local_url(self) -> str | None:
        """The address at which this process calls its own endpoints; Gradio's comes from a header of the first call."""
        request = self.mcp_server.request_context.request
        assert request is not None, "a tool is called over HTTP"
        scope = request.scope
        host, port = scope["server"]
        prefix = scope.get("root_path", "").partition("/gradio_api")[0]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}{prefix}/"

    def _prepare_tool_call_args(
        self, name: str, arguments: dict[str, Any]
    ) -> tuple[str, list[Any], dict[str, str], BlockFunction]:
        """Counts the call until its task ends, and forwards only the caller's address.

        ``InputError`` if too many calls are under way, because each waits in memory until it is an event of the queue.
        """
        task, request = asyncio.current_task(), self.mcp_server.request_context.request
        assert task is not None and request is not None, "each call of a tool has a task, and comes over HTTP"
        address, call = client_address(request.scope), token_hex(16)
        own, count = list(self._calls.values()).count(address), len(self._calls)
        is_full = count >= (MAX_TOOL_CALLS if own else MAX_FIRST_CALLS)
        if is_full or (address and own >= MAX_TOOL_CALLS_OF_ONE):
            raise InputError("Too many tools are being called: try again in a moment.")
        ended = ExitStack()  # closed with the task, which is cancelled when the caller leaves
        task.add_done_callback(lambda _: ended.close())
        self._calls[call] = address
        ended.callback(self._calls.pop, call)
        ended.enter_context(streams.listening(call))
        endpoint, values, _, block_fn = super()._prepare_tool_call_args(name, arguments)
        return endpoint, values, on_behalf_of(address, call), block_fn

    @cached_property
    def _calls(self) -> dict[str, str]:
        """The address of each call under way."""
        return {}

    def create_mcp_server(self) -> Server:
        """Gradio's server of the protocol, limited to ``METHODS``."""
        server = super().create_mcp_server()
        server.version = __version__
        for kind in [kind for kind in server.request_handlers if kind.__name__ not in METHODS]:
            del server.request_handlers[kind]
        return server

    async def _execute_tool_without_progress(self, job: Any) -> list[Any]:
        """Awaits the result, unlike Gradio, which occupies one of the threads that also serve the page."""
        return [await _in_time(asyncio.wrap_future(job.future))]

    async def _execute_tool_with_progress(self, job: Any, progress_token: str | int) -> dict[str, Any]:
        """Awaits the result and tells the caller of its progress."""
        return await _in_time(super()._execute_tool_with_progress(job, progress_token))

    _file_data_tool_description = ""  # Gradio's tells agents to upload files

    def get_input_schema(
        self, tool_name: str, parameters: dict[str, str] | None = None
    ) -> tuple[dict[str, Any], list[list[str | int]]]:
        """Gradio's schema of an endpoint's parameters, with pictures described as data URLs."""
        schema, pictures = super().get_input_schema(tool_name)
        for (name,) in pictures:
            described = schema["properties"][name]["description"]
            schema["properties"][name] = {"type": "string", "description": f"{described} {PICTURE}"}
        return schema, pictures

    def convert_strings_to_filedata(self, value: Any, filedata_positions: list[list[str | int]]) -> Any:
        """Leaves data URLs as they are: the endpoints check and decode them."""
        return value

    def postprocess_output_data(self, data: Any, root_url: str) -> list[Any]:
        """Gradio's content, with numbers as JSON instead of Python's repr."""

        def as_json(output: Any) -> Any:
            is_file = isinstance(output, dict) and "path" in output
            return json.dumps(output) if isinstance(output, dict | list) and not is_file else output

        outputs = data[0] if len(data) == 1 and isinstance(data[0], tuple) else data  # several outputs are one tuple
        return super().postprocess_output_data([as_json(output) for output in outputs], root_url)


async def _in_time(result: Awaitable[T]) -> T:
    try:
        return await asyncio.wait_for(result, TOOL_SECONDS)
    except TimeoutError as error:
        raise InputError("This took too long: try a larger patch size or another method.") from error
