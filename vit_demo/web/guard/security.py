"""The middleware in front of Gradio: limits on requests, closed routes, response headers. See ``SECURITY.md``."""

import asyncio
import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any
from urllib.parse import parse_qs

import gradio as gr
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vit_demo.defaults import MAX_PICTURE_BYTES
from vit_demo.web import settings
from vit_demo.web.guard import bodies
from vit_demo.web.guard.event_checks import EventChecks
from vit_demo.web.guard.headers import check_address, clean_headers, client_address
from vit_demo.web.guard.quota import Pace
from vit_demo.web.guard.visitor import set_owner, streams

UPLOAD_QUOTA_BYTES = 300_000_000
"""Uploads of one address at once, and again per hour."""

FORM_BYTES = 1000
"""What a form may add to its file."""

UPLOAD_FILE_BYTES = 50_000
"""What an upload counts besides its bytes, because each file has a folder of its own."""

REQUESTS_PER_SECOND, REQUESTS_AT_ONCE = 100, 50
"""Requests with a body that an address may start per second, and at once after a pause."""

BODY_BYTES_PER_SECOND, BODY_BYTES_AT_ONCE = 2_000_000, 8_000_000
"""Bytes of these bodies, likewise; a drawing of the page has 20 kB. Uploads have a quota of their own."""

FILES_PER_SECOND, FILES_AT_ONCE, FILES_WAIT_SECONDS = 200, 500, 20.0
"""Requests without a body, likewise, and their longest wait. Opening the page takes about 130 of them."""

MAX_REQUESTS, MAX_REQUESTS_OF_ONE, MAX_REQUESTS_WHEN_FULL = 600, 200, 8
"""Requests under way, including streams: in all, of one address, and of one address once the first limit is reached."""

EVENT_ROUTES = ("/queue/join", "/call/")
"""Routes of Gradio that begin an event."""

UPLOAD_TYPE = re.compile(r"multipart/form-data; ?boundary=(\"?)[\w'()+,./:=? -]{1,70}\1", re.ASCII | re.IGNORECASE)
"""No charset is allowed, because names would be decoded by it, with some charsets in quadratic time."""

FRAME_ANCESTORS = "'self' https://huggingface.co https://*.huggingface.co https://*.hf.space"
"""Sites that may show the page in a frame; huggingface.co shows a Space like this."""

PAGE_POLICY = (
    # Gradio needs inline scripts and eval; all scripts come from this server.
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; media-src 'self' data: blob:; connect-src 'self' data: blob:; "
    "worker-src 'self' blob:; object-src 'none'; base-uri 'self'; form-action 'self'; "
    f"frame-ancestors {FRAME_ANCESTORS}"
)
PERMISSIONS = "camera=(self), microphone=(), geolocation=(), display-capture=(), payment=(), usb=(), serial=(), hid=()"
"""Scripts may only use the camera."""

FILE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
"""The policy of uploaded files: nothing in them may run."""

UPLOAD_ROUTES = ("/upload", "/vit_demo/photo")
UPLOAD_LIMIT = "You have reached the upload limit: try again later, or use smaller pictures."


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


class Guard:
    """ASGI middleware in front of Gradio's application."""

    def __init__(self, app: ASGIApp, page: gr.Blocks) -> None:
        self._app = app
        self._checks = EventChecks(page)
        self._uploads = Pace(UPLOAD_QUOTA_BYTES / 3600, UPLOAD_QUOTA_BYTES, 0.001, UPLOAD_LIMIT)
        self._pace = Pace(REQUESTS_PER_SECOND, REQUESTS_AT_ONCE)
        self._bytes = Pace(BODY_BYTES_PER_SECOND, BODY_BYTES_AT_ONCE)
        self._files = Pace(FILES_PER_SECOND, FILES_AT_ONCE, FILES_WAIT_SECONDS)
        self._arrivals = bodies.Arrivals()
        self._under_way = Counter[str]()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuses a request, or passes it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = scope["path"].removeprefix(scope.get("root_path", "")).removeprefix("/gradio_api")
        origin = Headers(scope=scope).get("origin")
        is_upload = path in UPLOAD_ROUTES

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                _set_headers(MutableHeaders(scope=message), scope, path, origin)
            await send(message)

        try:
            check_address(scope, path)
            clean_headers(scope, path)
            set_owner(scope)
            has_body = scope["method"] in ("POST", "PUT", "PATCH", "DELETE")
            bodies.check_framing(scope, has_body)
            address = client_address(scope)
            with self._counted(address):
                await self._wait_in_turn(address, has_body)
                if is_upload:
                    receive = self._upload(scope, path, receive, address)
                elif has_body:
                    receive = await self._event(scope, receive, path, address)
                if name := stream_name(scope, path):
                    self._checks.check_stream(name)
                with streams.listening(name) if name else nullcontext():
                    await self._app(scope, receive, send_guarded)
        except bodies.RequestRefused as refusal:
            scope.setdefault("state", {})["refusal"] = refusal
            headers = {"connection": "close"} if refusal.closes else {}
            response = JSONResponse({"detail": str(refusal), "error": str(refusal)}, refusal.status, headers)
            await response(scope, receive, send_guarded)
        except ClientDisconnect:
            pass  # the client has left during an upload

    async def _wait_in_turn(self, address: str, has_body: bool) -> None:
        if address:
            await asyncio.sleep((self._pace if has_body else self._files).wait(address))

    @contextmanager
    def _counted(self, address: str) -> Iterator[None]:
        """Counts a request while it is under way; ``RequestRefused`` if there are too many."""
        most = MAX_REQUESTS_OF_ONE if self._under_way.total() < MAX_REQUESTS else MAX_REQUESTS_WHEN_FULL
        if address and self._under_way[address] >= most:
            raise bodies.RequestRefused(429, "You have too many requests under way: wait for one of them.")
        self._under_way[address] += 1
        try:
            yield
        finally:
            self._under_way[address] -= 1
            if not self._under_way[address]:
                del self._under_way[address]

    async def _event(self, scope: Scope, receive: Receive, path: str, address: str) -> Receive:
        """Reads and checks the whole body of a request that is not an upload, before Gradio sees it."""
        length = bodies.content_length(scope)
        if length > bodies.MAX_EVENT_BYTES:
            raise bodies.RequestRefused(413, bodies.TOO_LARGE)
        if address:
            await asyncio.sleep(self._bytes.wait(address, length))
        body = await self._arrivals.read(address, receive)
        data = bodies.check_body(body)
        self._checks.check_session(data)
        if path.startswith("/cancel"):
            self._checks.check_room(data)
        elif path.startswith(EVENT_ROUTES):
            self._checks.check_share(address)
            if self._checks.check_event(path, data):
                body = json.dumps(data).encode()
        read = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def replay() -> Message:
            return next(read, None) or await receive()

        return replay

    def _upload(self, scope: Scope, path: str, receive: Receive, address: str) -> Receive:
        """Counts the length of an upload against the quota of its sender, and limits the time of its arrival."""
        length = bodies.content_length(scope)
        if not length:
            raise bodies.RequestRefused(411, "An upload needs a Content-Length: send it whole, not in chunks.")
        if path == "/upload" and not UPLOAD_TYPE.fullmatch(Headers(scope=scope).get("content-type", "")):
            raise bodies.RequestRefused(415, "An upload is multipart/form-data with a boundary, and without a charset.")
        if length > MAX_PICTURE_BYTES + FORM_BYTES:
            too_large = f"The file is larger than {MAX_PICTURE_BYTES // 10**6} MB: send a smaller copy."
            raise bodies.RequestRefused(413, too_large)
        self._uploads.wait(address, length + UPLOAD_FILE_BYTES)
        started, arrived = asyncio.get_running_loop().time(), 0

        async def receive_in_time() -> Message:
            nonlocal arrived
            try:
                async with asyncio.timeout_at(bodies.latest(started, arrived, bodies.UPLOAD_SECONDS)):
                    message = await receive()
            except TimeoutError as error:
                raise bodies.RequestRefused(408, bodies.TOO_SLOW) from error
            arrived += len(message.get("body", b""))
            return message

        return receive_in_time


def stream_name(scope: Scope, path: str) -> str:
    """The session or event whose results a request collects; empty for any other request."""
    if scope["method"] != "GET":
        return ""
    if path.startswith("/queue/data"):
        return parse_qs(scope.get("query_string", b"").decode("latin-1")).get("session_hash", [""])[0][:64]
    return path.rstrip("/").rpartition("/")[2][:64] if path.startswith("/call/") else ""


def _set_headers(headers: MutableHeaders, scope: Scope, path: str, origin: str | None) -> None:
    if origin not in settings.allowed_origins():
        for name in ("access-control-allow-origin", "access-control-allow-credentials"):
            del headers[name]
    headers["x-content-type-options"] = "nosniff"
    headers["referrer-policy"] = "strict-origin-when-cross-origin"
    headers["permissions-policy"] = PERMISSIONS
    if Headers(scope=scope).get("x-forwarded-proto") == "https":  # dropped above unless a proxy is announced
        headers["strict-transport-security"] = "max-age=31536000"
    if path.rstrip("/") in ("", "/config"):  # both contain the address of the server
        headers["cache-control"] = "private, no-cache"
    headers["content-security-policy"] = FILE_POLICY if path.startswith("/file") else PAGE_POLICY
