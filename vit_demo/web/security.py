"""A middleware in front of Gradio: limits on requests, closed routes, response headers. See ``SECURITY.md``."""

from __future__ import annotations

import asyncio
import json
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import unquote

import gradio as gr
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vit_demo.web import settings, uploads
from vit_demo.web.limits import (
    BODY_TIMEOUT_SECONDS,
    MAX_EVENT_BYTES,
    MAX_EVENT_VALUES,
    MAX_UPLOAD_BYTES,
    UPLOAD_QUOTA_BYTES,
)

CLOSED_ROUTES = (
    "/monitoring", "/deep_link", "/proxy=", "/stream", "/process_recording", "/vibe", "/undo-vibe",
    "/run-history", "/runs", "/profiling", "/dev/", "/token", "/custom_component",
)  # fmt: skip
"""Routes of Gradio that the page does not use; closed with and without Gradio's prefix."""

FRAME_ANCESTORS = "'self' https://huggingface.co https://*.huggingface.co https://*.hf.space"
"""Sites that may show the page in a frame, as huggingface.co does with a Space."""

PAGE_POLICY = (
    # Gradio needs inline scripts and eval; all scripts come from this server.
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; media-src 'self' data: blob:; connect-src 'self' data: blob:; "
    "worker-src 'self' blob:; object-src 'none'; base-uri 'self'; form-action 'self'; "
    f"frame-ancestors {FRAME_ANCESTORS}"
)
FILE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
"""The policy of uploaded files: nothing in them may run."""


class SafeBlocks(gr.Blocks):
    """``gr.Blocks`` with an error message for inputs that Gradio cannot read."""

    async def preprocess_data(self, *arguments: Any, **options: Any) -> list[Any]:
        """Gradio's method, with exceptions turned into ``gr.Error``.

        Raises:
            gr.Error: If an event has too few or too many inputs, or inputs of the wrong type.
        """
        try:
            return await super().preprocess_data(*arguments, **options)
        except gr.Error:
            raise
        except Exception as error:
            message = "These inputs do not match the endpoint: see /gradio_api/info for their number and types."
            raise gr.Error(message, print_exception=False) from error


class Guard:
    """ASGI middleware in front of Gradio.

    Args:
        app: Gradio's application.
        page: The page that it serves.
    """

    def __init__(self, app: ASGIApp, page: gr.Blocks) -> None:
        self._app = app
        self._page = page
        self._quota = Quota(UPLOAD_QUOTA_BYTES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuses a request, or passes it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = unquote(scope["path"]).removeprefix(scope.get("root_path", "")).removeprefix("/gradio_api")
        origin = Headers(scope=scope).get("origin")
        is_upload = path.rstrip("/") == "/upload"
        has_failed = False

        async def send_guarded(message: Message) -> None:
            nonlocal has_failed
            if message["type"] == "http.response.start":
                has_failed = is_upload and message["status"] == 500  # the error follows, and its message below
                _set_headers(MutableHeaders(scope=message), path, origin)
            if not has_failed:
                await send(message)

        try:
            if path.startswith(CLOSED_ROUTES):
                raise RequestRefused(404, "Not found.")
            if scope["method"] in ("POST", "PUT", "PATCH", "DELETE"):
                receive = await self._bounded(scope, receive, path)
            await self._app(scope, receive, send_guarded)
        except (RequestRefused, OSError) as error:
            if not isinstance(error, RequestRefused) and not has_failed:
                raise
            refusal = error if isinstance(error, RequestRefused) else RequestRefused(507, NOT_STORED)
            response = JSONResponse({"detail": str(refusal), "error": str(refusal)}, refusal.status)
            await response(scope, receive, send_guarded)

    async def _bounded(self, scope: Scope, receive: Receive, path: str) -> Receive:
        """Limits the size of the body; the body of an event is read and checked before Gradio sees it."""
        if path.rstrip("/") == "/upload":
            return self._upload(scope, receive, _client_address(scope))
        if _content_length(scope) > MAX_EVENT_BYTES:
            raise RequestRefused(413, TOO_LARGE)
        body = b""
        more = True
        deadline = time.monotonic() + BODY_TIMEOUT_SECONDS
        while more:
            message = await _receive_before(receive, deadline)
            if message["type"] != "http.request":
                raise RequestRefused(400, "The request is incomplete: send it again.")
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > MAX_EVENT_BYTES:
                raise RequestRefused(413, TOO_LARGE)
        data = check_body(body)
        if path.startswith("/component_server"):
            self._check_call(data)
        elif path.startswith(("/queue/join", "/call/", "/run/", "/api/")):
            self._check_event(path, data)
        replayed = False

        async def replay() -> Message:
            nonlocal replayed
            if replayed:
                return await receive()
            replayed = True
            return {"type": "http.request", "body": body, "more_body": False}

        return replay

    def _check_call(self, data: Any) -> None:
        """Refuses calls of server functions that do not exist, for which Gradio would log a traceback."""
        call = data if isinstance(data, dict) else {}
        component_id, name = call.get("component_id"), call.get("fn_name")
        component = self._page.blocks.get(component_id) if isinstance(component_id, int) else None
        function = getattr(component, name, None) if isinstance(name, str) else None
        is_complete = isinstance(call.get("session_hash"), str) and "data" in call
        if not is_complete or not getattr(function, "_is_server_fn", False):
            raise RequestRefused(400, "There is no such function: reload the page.")

    def _check_event(self, path: str, data: Any) -> None:
        """Refuses events that do not exist, for which Gradio would log a traceback."""
        index = data.get("fn_index") if isinstance(data, dict) else None
        name = path.rstrip("/").rpartition("/")[2]
        by_name = not path.startswith("/queue/join") and any(fn.api_name == name for fn in self._page.fns.values())
        if not by_name and not (isinstance(index, int) and index in self._page.fns):
            raise RequestRefused(404, "There is no such endpoint: see /gradio_api/info.")

    def _upload(self, scope: Scope, receive: Receive, address: str) -> Receive:
        """The body of an upload, whose Content-Length counts against the quota of its sender."""
        length = _content_length(scope)
        if not length:
            raise RequestRefused(411, "An upload needs a Content-Length: send it whole, not in chunks.")
        if length > MAX_UPLOAD_BYTES + MAX_EVENT_BYTES:
            raise RequestRefused(413, f"The file is larger than {MAX_UPLOAD_BYTES // 10**6} MB: send a smaller copy.")
        self._quota.spend(address, length)
        deadline = time.monotonic() + BODY_TIMEOUT_SECONDS

        async def receive_in_time() -> Message:
            try:
                return await _receive_before(receive, deadline)
            except RequestRefused:
                return {"type": "http.disconnect"}  # too late for a response: Gradio already reads the body

        return receive_in_time


NOT_STORED = "The file could not be stored, because the server’s disk is full or cannot be written: try again later."

TOO_LARGE = f"The request is larger than {MAX_EVENT_BYTES // 1000} kB: send less at once."


class RequestRefused(Exception):
    """A request that is not passed on to Gradio.

    Args:
        status: HTTP status of the response.
        message: What to do instead, for the sender.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Quota:
    """Limits how many bytes each address may upload within a period.

    Args:
        nbytes: Bytes per address and period.
        seconds: Length of the period.
        addresses: Number of addresses to count; beyond that the least recently seen is discarded.
        clock: Returns the time in seconds.
    """

    def __init__(
        self,
        nbytes: int,
        seconds: float = 3600.0,
        addresses: int = 10_000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._nbytes, self._seconds, self._addresses, self._clock = nbytes, seconds, addresses, clock
        self._used: OrderedDict[str, deque[tuple[float, int]]] = OrderedDict()

    def spend(self, address: str, nbytes: int) -> None:
        """Counts an upload.

        Raises:
            RequestRefused: If it is more than the quota allows.
        """
        used = self._used.setdefault(address, deque())
        self._used.move_to_end(address)
        if len(self._used) > self._addresses:
            self._used.popitem(last=False)
        now = self._clock()
        while used and used[0][0] < now - self._seconds:
            used.popleft()
        if nbytes + sum(size for _, size in used) > self._nbytes:
            raise RequestRefused(429, "You have reached the upload limit: try again later, or use smaller pictures.")
        minute = now // 60 * 60
        if used and used[-1][0] == minute:
            used[-1] = (minute, used[-1][1] + nbytes)
        else:
            used.append((minute, nbytes))


def check_body(body: bytes) -> Any:
    """Parses a JSON body; refuses invalid JSON, too many values, and paths outside the upload folder.

    The file system is not accessed, so the response reveals nothing about it.

    Returns:
        The values; None for an empty body.

    Raises:
        RequestRefused: If the body is refused.
    """
    if not body:
        return None
    try:
        data = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise RequestRefused(400, "The body is not valid JSON: send a JSON object.") from error
    stack, count = [data], 0
    while stack:
        value = stack.pop()
        count += 1
        if count > MAX_EVENT_VALUES:
            raise RequestRefused(413, TOO_LARGE)
        children: Iterable[Any] = ()
        if isinstance(value, dict):
            if "path" in value and value["path"] is not None and not uploads.is_upload_path(value["path"]):
                raise RequestRefused(400, uploads.NOT_AN_UPLOAD)
            children = value.values()
        elif isinstance(value, list):
            children = value
        stack.extend(children)
    return data


def _client_address(scope: Scope) -> str:
    """The address of a request; behind a proxy the last one in the header, the only one that the proxy itself added."""
    forwarded = Headers(scope=scope).getlist("x-forwarded-for") if settings.behind_proxy() else []
    return forwarded[-1].rpartition(",")[2].strip()[:64] if forwarded else (scope.get("client") or ("", 0))[0]


def _content_length(scope: Scope) -> int:
    """The length of a body in bytes; 0 if it is not known, as that of a body in chunks, whatever it claims."""
    headers = Headers(scope=scope)
    length = "0" if "transfer-encoding" in headers else headers.get("content-length", "0")
    return int(length) if length.isascii() and length.isdigit() and len(length) < 16 else 0


async def _receive_before(receive: Receive, deadline: float) -> Message:
    try:
        return await asyncio.wait_for(receive(), max(0.0, deadline - time.monotonic()))
    except TimeoutError as error:
        raise RequestRefused(408, "The request took too long to arrive: send it again.") from error


def _set_headers(headers: MutableHeaders, path: str, origin: str | None) -> None:
    if origin not in settings.allowed_origins():
        for name in ("access-control-allow-origin", "access-control-allow-credentials"):
            del headers[name]
    headers["x-content-type-options"] = "nosniff"
    headers["referrer-policy"] = "strict-origin-when-cross-origin"
    headers["content-security-policy"] = FILE_POLICY if path.startswith("/file") else PAGE_POLICY
