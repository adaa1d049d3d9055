"""Checks of the address and the headers of a request, before Gradio sees them."""

import re
from ipaddress import IPv6Network
from secrets import compare_digest, token_hex
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.types import Scope

from vit_demo.web import settings
from vit_demo.web.guard import uploads
from vit_demo.web.guard.bodies import RequestRefused

MAX_HEADER_LENGTH = 4096
"""Characters of one request header, cookies aside."""

MAX_SEGMENT_LENGTH = 255
"""Bytes of one part of a path, as in most file systems."""

MAX_PATH_LENGTH = 2000
"""Bytes of a whole path."""

OPEN_ROUTES = {
    "GET": re.compile(
        r"/|/(config|theme\.css|robots\.txt|favicon\.ico|healthz|info|api|lessons|faithfulness|openapi\.json|app_id|startup-events|mcp|mcp/schema)/?"
        r"|/(assets|static|vit_demo)/.+|/file[=/].+|/heartbeat/\w+|/queue/data|/call/(v2/)?\w+/\w+/?",
        re.ASCII | re.DOTALL,
    ),
    "POST": re.compile(r"/(queue/join|upload|component_server|cancel|reset|mcp)/?|/call/(v2/)?\w+/?", re.ASCII),
    "DELETE": re.compile(r"/mcp/?"),
}
"""The routes that the page, Gradio's clients and agents use, by method; whatever else Gradio has is closed."""

FILE = re.compile(r"/+file[=/](.*)", re.IGNORECASE | re.DOTALL)
"""A file that Gradio passes on; of a URL in its place, Gradio would download what is there."""

LARGE_ASSET = re.compile(r"/+assets/(Plotly|Altair)", re.IGNORECASE)
"""Scripts of Gradio that the page does not load, and that take a quarter of a second to compress."""

_VISITOR_HEADER = "x-vit-demo-visitor"
_SECRET = token_hex(16)
"""Known to this process alone, so that no visitor can pretend to be another."""

_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[\w.-]+)(:\d{1,5})?", re.ASCII | re.IGNORECASE)
_RANGE = re.compile(r"bytes=\d{0,15}-\d{0,15}", re.ASCII)


def check_address(scope: Scope, path: str) -> None:
    """Refuses closed routes, URLs in the place of files, and what is too long, by ``RequestRefused``.

    ``path`` is that of the request, without Gradio's prefix, here and below.
    """
    file = FILE.match(path)
    # The path alone decides: looking it up would take longer for a file that is there.
    is_foreign = file is not None and not uploads.is_upload_path(file[1])
    asked = {"HEAD": ["GET"], "OPTIONS": OPEN_ROUTES}.get(scope["method"], [scope["method"]])
    is_open = any(OPEN_ROUTES[method].fullmatch(path or "/") for method in asked if method in OPEN_ROUTES)
    if not is_open or is_foreign or LARGE_ASSET.match(path):
        raise RequestRefused(404, "Not found.")
    segments = [segment.encode(errors="replace") for segment in path.split("/")]
    if max(map(len, segments)) > MAX_SEGMENT_LENGTH or sum(map(len, segments)) > MAX_PATH_LENGTH:
        raise RequestRefused(404, "Not found.")
    query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
    if path in ("", "/") and any(query.get("page", ())):
        raise RequestRefused(404, "Not found.")
    if any(len(value) > MAX_HEADER_LENGTH and name != b"cookie" for name, value in scope["headers"]):
        raise RequestRefused(431, f"A request header is longer than {MAX_HEADER_LENGTH} characters: shorten it.")


def clean_headers(scope: Scope, path: str) -> None:
    """Replaces headers from which Gradio would conclude something wrong, or do more work than is asked for.

    ``RequestRefused`` if a host is not valid, or another site sends the request.
    """
    headers = Headers(scope=scope)
    dropped = {b"x-gradio-server"}
    if path.startswith("/file"):
        dropped.add(b"accept-encoding")  # uploads of any size would be compressed for each request
    if "range" in headers and not _RANGE.fullmatch(headers["range"]):
        dropped.add(b"range")
    scope["headers"] = [one for one in scope["headers"] if one[0] not in dropped and one != (b"host", b"")]
    if not headers.get("host"):  # as in health checks by HTTP/1.0
        host, port = scope.get("server") or ("localhost", None)
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        scope["headers"].append((b"host", address.encode() if port else b"localhost"))
    hosts = [*headers.getlist("host"), *headers.getlist("x-forwarded-host")]
    if not all(_HOST.fullmatch(host.partition(",")[0].strip()) for host in hosts if host):
        raise RequestRefused(400, "The Host header is not the name of a host.")
    is_change = scope["method"] in ("POST", "PUT", "PATCH", "DELETE")
    is_foreign = (
        headers.get("sec-fetch-site") == "cross-site" and headers.get("origin") not in settings.allowed_origins()
    )
    if is_change and is_foreign:
        raise RequestRefused(403, "Pages of other sites may not use this server: see VIT_DEMO_ALLOWED_ORIGINS.")


def on_behalf_of(address: str, call: str) -> dict[str, str]:
    """The headers of a request that this process sends to itself for a visitor's call of a tool."""
    return {_VISITOR_HEADER: f"{_SECRET} {call} {address}"}


def tool_call(scope: Scope) -> tuple[str, str] | None:
    """The name and the visitor's address of the call of a tool, if this process sends the request to itself for one."""
    secret, _, about = Headers(scope=scope).get(_VISITOR_HEADER, "").partition(" ")
    call, _, address = about.partition(" ")
    return (call, address) if compare_digest(secret.encode(), _SECRET.encode()) else None


def client_address(scope: Scope) -> str:
    """The address of a request; behind a proxy the last one in the header, the only one that the proxy itself added."""
    if (call := tool_call(scope)) is not None:
        return call[1]
    forwarded = Headers(scope=scope).getlist("x-forwarded-for")
    address, port = scope.get("client") or ("", 0)
    if forwarded and settings.behind_proxy():
        address = forwarded[-1].rpartition(",")[2].strip()[:64]
    elif forwarded and not port:
        address = "127.0.0.1"  # uvicorn's default puts what the header says in the place of a local client, with port 0
    try:
        # One visitor of IPv6 has a whole network of 2^64 addresses.
        return str(IPv6Network((address, 64), strict=False))
    except ValueError:
        return address


def is_local(address: str) -> bool:
    """Whether an address is this machine's own, which may stand for many visitors of an unannounced proxy."""
    return address.startswith("127.") or address == "::/64"
