"""Checks of the address and the headers of a request, before Gradio sees them."""

import re
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
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
    if not settings.num_proxies():
        dropped |= {name for name, _ in scope["headers"] if name.startswith((b"forwarded", b"x-forwarded-"))}
    if path.startswith("/file"):
        dropped.add(b"accept-encoding")  # uploads of any size would be compressed for each request
    if "range" in headers and not _RANGE.fullmatch(headers["range"]):
        dropped.add(b"range")
    scope["headers"] = [one for one in scope["headers"] if one[0] not in dropped and one != (b"host", b"")]
    if not headers.get("host"):  # as in health checks by HTTP/1.0
        host, port = scope.get("server") or ("localhost", None)
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        scope["headers"].append((b"host", address.encode() if port else b"localhost"))
    headers = Headers(scope=scope)
    hosts = [*headers.getlist("host"), *headers.getlist("x-forwarded-host")]
    if not all(_HOST.fullmatch(host.partition(",")[0].strip()) for host in hosts if host):
        raise RequestRefused(400, "The Host header is not the name of a host.")
    name, here = headers["host"].partition(":")[0], _parse((scope.get("server") or ("",))[0])
    is_public = "." in name and not name.endswith(".localhost") and not name.rpartition(".")[2].isdigit()
    if is_public and here is not None and here.is_loopback and not settings.num_proxies():
        # A page of another site, whose name its owner lets point to this machine, would read everything here.
        raise RequestRefused(421, "Open this page at localhost; behind a proxy, start it with VIT_DEMO_PROXY=1.")
    is_change = scope["method"] in ("POST", "PUT", "PATCH", "DELETE")
    is_foreign = (
        headers.get("sec-fetch-site") == "cross-site" and headers.get("origin") not in settings.allowed_origins()
    )
    if is_change and is_foreign:
        raise RequestRefused(403, "Pages of other sites may not use this server: see VIT_DEMO_ALLOWED_ORIGINS.")


def on_behalf_of(address: str, call: str) -> dict[str, str]:
    """The headers of a request that this process sends to itself for a visitor's call of a tool."""
    return {_VISITOR_HEADER: f"{_SECRET} {call} {address}".strip()}


def tool_call(scope: Scope) -> tuple[str, str] | None:
    """The name and the visitor's address of the call of a tool, if this process sends the request to itself for one."""
    secret, _, about = Headers(scope=scope).get(_VISITOR_HEADER, "").partition(" ")
    call, _, address = about.partition(" ")
    return (call, address) if compare_digest(secret.encode(), _SECRET.encode()) else None


def client_address(scope: Scope) -> str:
    """The visitor who sends a request, as an address of IPv4 or a network of IPv6; "" for a program of this machine.

    Such a program, which may be a proxy that was not announced, stands for many visitors and has no limits of its own.
    Behind proxies, each of which adds the address that it was called from, the outermost trusted one names the visitor.
    """
    if (call := tool_call(scope)) is not None:
        return call[1]
    address, port = scope.get("client") or ("", 0)
    if count := settings.num_proxies():
        forwarded = ",".join(Headers(scope=scope).getlist("x-forwarded-for")).split(",")
        address = forwarded[-count:][0].strip() or address
    found = _parse(address)
    # uvicorn's default puts what a header says in the place of a local client, with port 0.
    if not count and (not port or (found is not None and found.is_loopback)):
        return ""
    if found is None:
        return "unknown"
    # One visitor of IPv6 has a whole network of 2^64 addresses.
    return str(found) if found.version == 4 else str(IPv6Network((found, 64), strict=False))


def _parse(text: str) -> IPv4Address | IPv6Address | None:
    """The address in a text, which may have brackets, a port or a zone; of IPv4 also if it is written as IPv6."""
    text = text.strip(' \t"')
    text = text[1:].partition("]")[0] if text.startswith("[") else text
    text = text.partition(":")[0] if text.count(":") == 1 else text
    try:
        found = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found
