"""The middlewares in front of Gradio: limits on requests, closed routes, response headers. See ``SECURITY.md``."""

import asyncio
import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from urllib.parse import parse_qs

import gradio as gr
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vit_demo.defaults import MAX_PICTURE_BYTES
from vit_demo.web.guard import bodies
from vit_demo.web.guard.event_checks import EventChecks
from vit_demo.web.guard.headers import VISITOR, check_address, clean_headers, client_address, is_change, path_of
from vit_demo.web.guard.quota import Pace
from vit_demo.web.guard.response_headers import set_headers
from vit_demo.web.guard.visitor import set_owner, streams

UPLOAD_QUOTA_BYTES = 300_000_000  # uploads of one address at once, and again per hour
FORM_BYTES = 1000  # what a form may add to the bytes of its file
UPLOAD_FILE_BYTES = 50_000  # what an upload counts besides its bytes, because each file has a folder of its own

REQUESTS_PER_SECOND, REQUESTS_AT_ONCE = 100, 50  # of one address, with a body; at once after a pause

BODY_BYTES_PER_SECOND, BODY_BYTES_AT_ONCE = 2_000_000, 8_000_000
"""Bytes of these bodies, likewise; a drawing of the page has 20 kB. Uploads have a quota of their own."""

LIVE_BYTES_PER_SECOND, LIVE_BYTES_AT_ONCE, LIVE_WAIT_SECONDS = 800_000, 800_000, 0.5
"""Bytes of live requests that an address may send per second, at once, and their longest wait. They cost what their
pictures do: a frame of a camera five to ten times as much as a drawing, of which a class sends 120 a second."""

LIVE_DRAWING_BYTES, MAX_LIVE_BYTES = 4_000, 110_000  # what a live request counts at least, and may have at most

FILES_PER_SECOND, FILES_AT_ONCE, FILES_WAIT_SECONDS = 200, 500, 20.0
"""Requests without a body, likewise, and their longest wait. Opening the page takes about 130 of them."""

REFUSED_SECONDS = 2.0  # wait of a request that is refused because there are too many

MAX_REQUESTS, MAX_REQUESTS_OF_ONE, MAX_REQUESTS_WHEN_FULL = 600, 200, 8
"""Requests under way, including streams: in all, of one address, and of one address once the first limit is reached."""

MAX_UPLOADS_OF_ONE = 24  # uploads of one address under way; each holds a file, and a class may share an address
EVENT_ROUTES = ("/queue/join", "/call/")  # routes of Gradio that begin an event

UPLOAD_TYPE = re.compile(r"multipart/form-data; ?boundary=(\"?)[\w'()+,./:=? -]{1,70}\1", re.ASCII | re.IGNORECASE)
"""No charset is allowed, because names would be decoded by it, with some charsets in quadratic time."""

JSON_TYPE = re.compile(r"application/json *(;.*)?", re.ASCII | re.IGNORECASE)
"""Pages of other sites may send any other type without asking the server first."""

UPLOAD_ROUTES = ("/upload", "/vit_demo/photo")
LIVE_ROUTE = "/vit_demo/live"
NOT_JSON = "A request is JSON with the header Content-Type: application/json; reload the page if you use one."
LIVE_TOO_LARGE = f"A live request is larger than {MAX_LIVE_BYTES // 1000} kB: send smaller frames."
UPLOAD_LIMIT = "You have reached the upload limit: try again later, or use smaller pictures."


def guard(page: gr.Blocks) -> list[Middleware]:
    """What an HTTP request passes before Gradio sees it, outermost first."""
    checks = EventChecks(page)
    return [
        Middleware(ResponseHeaders),
        Middleware(Refusals),
        Middleware(Turns),
        Middleware(Addresses),
        Middleware(Shares),
        Middleware(Uploads),
        Middleware(Events, checks),
        Middleware(ResultStreams, checks),
    ]


class _Part:
    """An ASGI middleware for HTTP requests; anything else passes by."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on; ``RequestRefused`` if it may not be sent, or not now."""
        await (self._handle if scope["type"] == "http" else self.app)(scope, receive, send)

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        raise NotImplementedError


class ResponseHeaders(_Part):
    """Restricts in every response what a browser may do."""

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                set_headers(MutableHeaders(scope=message), scope)
            await send(message)

        await self.app(scope, receive, send_guarded)


class Refusals(_Part):
    """Responds to what the parts below refuse."""

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self.app(scope, receive, send)
        except bodies.RequestRefused as refusal:
            scope.setdefault("state", {})["refusal"] = refusal
            headers = {"connection": "close"} if refusal.closes else {}
            response = JSONResponse({"detail": str(refusal), "error": str(refusal)}, refusal.status, headers)
            await response(scope, receive, send)
        except ClientDisconnect:
            pass  # the client has left during an upload


class Addresses(_Part):
    """Checks where a request goes."""

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = path_of(scope)
        check_address(scope, path)
        clean_headers(scope, path)
        bodies.check_framing(scope, is_change(scope))
        is_page = scope["path"] == scope.get("root_path") != ""  # without the slash below which the browser asks
        query = scope.get("query_string", b"").decode("latin-1")
        await (RedirectResponse(f"{scope['path']}/?{query}".rstrip("?")) if is_page else self.app)(scope, receive, send)


class Shares(_Part):
    """Counts what each address has under way, so that nobody has too much at once."""

    def __init__(self, app: ASGIApp) -> None:
        super().__init__(app)
        self._requests, self._uploads = Counter[str](), Counter[str]()

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        most = MAX_REQUESTS_OF_ONE if self._requests.total() < MAX_REQUESTS else MAX_REQUESTS_WHEN_FULL
        with ExitStack() as counted:
            counted.enter_context(_counted(self._requests, scope[VISITOR], most))
            if path_of(scope) in UPLOAD_ROUTES:
                counted.enter_context(_counted(self._uploads, scope[VISITOR], MAX_UPLOADS_OF_ONE))
            await self.app(scope, receive, send)


@contextmanager
def _counted(under_way: Counter[str], address: str, most: int) -> Iterator[None]:
    """Counts a request of an address while it is under way; ``RequestRefused`` if there are too many."""
    if address and under_way[address] >= most:
        raise bodies.RequestRefused(429, "You have too many requests under way: wait for one of them.")
    under_way[address] += 1
    try:
        yield
    finally:
        under_way -= Counter([address])  # keeps no zeros


class Turns(_Part):
    """Notes from whom a request comes, and lets it wait until it is its turn, also if it is then refused."""

    def __init__(self, app: ASGIApp) -> None:
        super().__init__(app)
        self._changes = Pace(REQUESTS_PER_SECOND, REQUESTS_AT_ONCE)
        self._files = Pace(FILES_PER_SECOND, FILES_AT_ONCE, FILES_WAIT_SECONDS)
        self._live = Pace(LIVE_BYTES_PER_SECOND, LIVE_BYTES_AT_ONCE, LIVE_WAIT_SECONDS)

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        set_owner(scope)
        scope[VISITOR] = address = client_address(scope)
        try:
            pace, count = self._changes if is_change(scope) else self._files, 1
            if path_of(scope) == LIVE_ROUTE:
                pace, count = self._live, max(bodies.content_length(scope), LIVE_DRAWING_BYTES)
                if count > MAX_LIVE_BYTES:
                    raise bodies.RequestRefused(413, LIVE_TOO_LARGE)
            await asyncio.sleep(pace.wait(address, count) if address else 0)
        except bodies.RequestRefused:
            await asyncio.sleep(REFUSED_SECONDS)
            raise
        await self.app(scope, receive, send)


class Uploads(_Part):
    """Counts the length of an upload against the quota of its sender, and limits the time of its arrival."""

    def __init__(self, app: ASGIApp) -> None:
        super().__init__(app)
        self._quota = Pace(UPLOAD_QUOTA_BYTES / 3600, UPLOAD_QUOTA_BYTES, 0.001, UPLOAD_LIMIT)

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = path_of(scope)
        if path not in UPLOAD_ROUTES:
            await self.app(scope, receive, send)
            return
        length = bodies.content_length(scope)
        if not length:
            raise bodies.RequestRefused(411, "An upload needs a Content-Length: send it whole, not in chunks.")
        kind = Headers(scope=scope).get("content-type", "")
        if path == "/upload" and not UPLOAD_TYPE.fullmatch(kind):
            raise bodies.RequestRefused(415, "An upload is multipart/form-data with a boundary, and without a charset.")
        if length > MAX_PICTURE_BYTES + FORM_BYTES:
            too_large = f"The file is larger than {MAX_PICTURE_BYTES // 10**6} MB: send a smaller copy."
            raise bodies.RequestRefused(413, too_large)
        self._quota.wait(scope[VISITOR], length + UPLOAD_FILE_BYTES)
        await self.app(scope, bodies.in_time(receive), send)


class Events(_Part):
    """Reads the whole body of a request that is no upload, and checks it and the event that it begins."""

    def __init__(self, app: ASGIApp, checks: EventChecks) -> None:
        super().__init__(app)
        self._checks = checks
        self._bytes = Pace(BODY_BYTES_PER_SECOND, BODY_BYTES_AT_ONCE)
        self._arrivals = bodies.Arrivals()

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = path_of(scope)
        if path in UPLOAD_ROUTES or not is_change(scope):
            await self.app(scope, receive, send)
            return
        length, address = bodies.content_length(scope), scope[VISITOR]
        if length > bodies.MAX_EVENT_BYTES:
            raise bodies.RequestRefused(413, bodies.TOO_LARGE)
        if length and not JSON_TYPE.fullmatch(Headers(scope=scope).get("content-type", "")):
            raise bodies.RequestRefused(415, NOT_JSON)
        if address and path != LIVE_ROUTE:  # whose bytes are counted already
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

        await self.app(scope, replay, send)


class ResultStreams(_Part):
    """Notes which results are being collected, and refuses to collect what is not there."""

    def __init__(self, app: ASGIApp, checks: EventChecks) -> None:
        super().__init__(app)
        self._checks = checks

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        if name := stream_name(scope, path_of(scope)):
            self._checks.check_stream(name)
        with streams.listening(name) if name else nullcontext():
            await self.app(scope, receive, send)


def stream_name(scope: Scope, path: str) -> str:
    """The session or event whose results a request collects; empty for any other request."""
    if scope["method"] != "GET":
        return ""
    if path.startswith("/queue/data"):
        return parse_qs(scope.get("query_string", b"").decode("latin-1")).get("session_hash", [""])[0][:64]
    return path.rstrip("/").rpartition("/")[2][:64] if path.startswith("/call/") else ""
