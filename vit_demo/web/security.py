"""What stands between strangers and Gradio: bounds, closed doors and headers. ``SECURITY.md`` says what it promises."""

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
from vit_demo.web.limits import BODY_SECONDS, EVENT_BYTES, EVENT_VALUES, UPLOAD_BYTES, UPLOAD_QUOTA

CLOSED = (
    "/monitoring", "/deep_link", "/proxy=", "/stream", "/process_recording", "/vibe", "/undo-vibe",
    "/run-history", "/runs", "/profiling", "/dev/", "/token", "/custom_component",
)  # fmt: skip
"""Routes of Gradio that this page does not use, with and without Gradio's own prefix."""

FRAMES = "'self' https://huggingface.co https://*.huggingface.co https://*.hf.space"
"""Who may show the page in a frame: a Space is shown in one."""

PAGE_POLICY = (
    # Gradio's own scripts are inline and make functions of strings; all of them come from this server.
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; media-src 'self' data: blob:; connect-src 'self' data: blob:; "
    f"worker-src 'self' blob:; object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors {FRAMES}"
)
FILE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
"""Of visitors' files: nothing in them may run."""


class Page(gr.Blocks):
    """``gr.Blocks`` that answers an input which Gradio cannot read with a sentence."""

    async def preprocess_data(self, *arguments: Any, **options: Any) -> list[Any]:
        """As Gradio's.

        Raises:
            gr.Error: If the inputs of an event are too few, too many or of the wrong kind.
        """
        try:
            return await super().preprocess_data(*arguments, **options)
        except gr.Error:
            raise
        except Exception as error:
            message = "These inputs do not fit the endpoint: see /gradio_api/info for their number and kinds."
            raise gr.Error(message, print_exception=False) from error


class Guard:
    """An ASGI application in front of Gradio's.

    Args:
        app: Gradio's.
        page: What Gradio serves.
    """

    def __init__(self, app: ASGIApp, page: gr.Blocks) -> None:
        self._app = app
        self._page = page
        self._quota = Quota(UPLOAD_QUOTA)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request, or hands it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = unquote(scope["path"]).removeprefix(scope.get("root_path", "")).removeprefix("/gradio_api")
        origin = Headers(scope=scope).get("origin")

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                _set_headers(MutableHeaders(scope=message), path, origin)
            await send(message)

        try:
            if path.startswith(CLOSED):
                raise Refusal(404, "There is nothing here.")
            if scope["method"] in ("POST", "PUT", "PATCH", "DELETE"):
                receive = await self._bounded(scope, receive, path)
            await self._app(scope, receive, send_guarded)
        except Refusal as refusal:
            response = JSONResponse({"detail": str(refusal), "error": str(refusal)}, refusal.status)
            await response(scope, receive, send_guarded)

    async def _bounded(self, scope: Scope, receive: Receive, path: str) -> Receive:
        """The body, at most as large as it may be; that of an event is read and checked before Gradio sees it."""
        if path.rstrip("/") == "/upload":
            return self._upload(scope, receive, _address(scope))
        if _announced(scope) > EVENT_BYTES:
            raise Refusal(413, TOO_LARGE)
        body = b""
        more = True
        deadline = time.monotonic() + BODY_SECONDS
        while more:
            message = await _in_time(receive, deadline)
            if message["type"] != "http.request":
                raise Refusal(400, "The request was not complete: send it again.")
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > EVENT_BYTES:
                raise Refusal(413, TOO_LARGE)
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
        """Refuses calls of functions that no component has, which Gradio answers with a bare error."""
        call = data if isinstance(data, dict) else {}
        number, name = call.get("component_id"), call.get("fn_name")
        component = self._page.blocks.get(number) if isinstance(number, int) else None
        function = getattr(component, name, None) if isinstance(name, str) else None
        named = isinstance(call.get("session_hash"), str) and "data" in call
        if not named or not getattr(function, "_is_server_fn", False):
            raise Refusal(400, "There is no such function: reload the page.")

    def _check_event(self, path: str, data: Any) -> None:
        """Refuses events that the page does not have, which Gradio answers with a bare error."""
        number = data.get("fn_index") if isinstance(data, dict) else None
        name = path.rstrip("/").rpartition("/")[2]
        by_name = not path.startswith("/queue/join") and any(fn.api_name == name for fn in self._page.fns.values())
        if not by_name and not (isinstance(number, int) and number in self._page.fns):
            raise Refusal(404, "There is no such endpoint: see /gradio_api/info.")

    def _upload(self, scope: Scope, receive: Receive, address: str) -> Receive:
        """The body of an upload, whose announced size is counted against the quota of its sender."""
        announced = _announced(scope)
        if not announced:
            raise Refusal(411, "The upload does not tell its size: send a Content-Length.")
        if announced > UPLOAD_BYTES + EVENT_BYTES:
            raise Refusal(413, f"The file is larger than {UPLOAD_BYTES // 10**6} MB: send a smaller copy.")
        self._quota.spend(address, announced)
        deadline = time.monotonic() + BODY_SECONDS

        async def until_late() -> Message:
            try:
                return await _in_time(receive, deadline)
            except Refusal:
                return {"type": "http.disconnect"}  # Gradio is reading already

        return until_late


TOO_LARGE = f"The request is larger than {EVENT_BYTES // 1000} kB: send less at once."


class Refusal(Exception):
    """A request is not handed on.

    Args:
        status: HTTP's.
        sentence: What to do.
    """

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class Quota:
    """Bytes that each address may upload within an hour.

    Args:
        nbytes: How many.
        seconds: What counts as an hour.
        addresses: How many are remembered; the one heard of longest ago is forgotten first.
        clock: Gives the time in seconds.
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
            Refusal: If it is more than the quota allows.
        """
        used = self._used.setdefault(address, deque())
        self._used.move_to_end(address)
        if len(self._used) > self._addresses:
            self._used.popitem(last=False)
        now = self._clock()
        while used and used[0][0] < now - self._seconds:
            used.popleft()
        if nbytes + sum(size for _, size in used) > self._nbytes:
            raise Refusal(429, "You have uploaded a lot within an hour: try again later, or use smaller pictures.")
        minute = now // 60 * 60
        if used and used[-1][0] == minute:
            used[-1] = (minute, used[-1][1] + nbytes)
        else:
            used.append((minute, nbytes))


def check_body(body: bytes) -> Any:
    """Reads JSON, and refuses what no page sends: broken or boundless JSON, and files that were not uploaded here.

    The file system is not asked, so that nothing can be learnt from the answer.

    Returns:
        The values; None of an empty body.

    Raises:
        Refusal: With one sentence.
    """
    if not body:
        return None
    try:
        data = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Refusal(400, "The body is not JSON that can be read: send a JSON object.") from error
    waiting, seen = [data], 0
    while waiting:
        value = waiting.pop()
        seen += 1
        if seen > EVENT_VALUES:
            raise Refusal(413, TOO_LARGE)
        inside: Iterable[Any] = ()
        if isinstance(value, dict):
            if "path" in value and value["path"] is not None and not uploads.is_inside(value["path"]):
                raise Refusal(400, uploads.GONE)
            inside = value.values()
        elif isinstance(value, list):
            inside = value
        waiting.extend(inside)
    return data


def _address(scope: Scope) -> str:
    """Who sent a request; behind a proxy the last address of the list, which alone is the proxy's own entry."""
    forwarded = Headers(scope=scope).getlist("x-forwarded-for") if settings.behind_proxy() else []
    return forwarded[-1].rpartition(",")[2].strip()[:64] if forwarded else (scope.get("client") or ("", 0))[0]


def _announced(scope: Scope) -> int:
    length = Headers(scope=scope).get("content-length", "0")
    return int(length) if length.isascii() and length.isdigit() and len(length) < 16 else 0


async def _in_time(receive: Receive, deadline: float) -> Message:
    try:
        return await asyncio.wait_for(receive(), max(0.0, deadline - time.monotonic()))
    except TimeoutError as error:
        raise Refusal(408, "The request took too long to arrive: send it again.") from error


def _set_headers(headers: MutableHeaders, path: str, origin: str | None) -> None:
    if origin not in settings.allowed_origins():
        for name in ("access-control-allow-origin", "access-control-allow-credentials"):
            del headers[name]
    headers["x-content-type-options"] = "nosniff"
    headers["referrer-policy"] = "strict-origin-when-cross-origin"
    headers["content-security-policy"] = FILE_POLICY if path.startswith("/file") else PAGE_POLICY
