"""Checks of the address and the headers of a request, before Gradio sees them."""

import re
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from secrets import compare_digest, token_hex
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers
from starlette.types import Scope

from vit_demo.web import settings
from vit_demo.web.guard import uploads
from vit_demo.web.guard.bodies import RequestRefused

MAX_HEADER_LENGTH = 4096  # characters of one request header, cookies aside
MAX_SEGMENT_LENGTH = 255  # bytes of one part of a path, as in most file systems
MAX_PATH_LENGTH = 2000  # bytes of a whole path

OPEN_ROUTES = {
    "GET": re.compile(
        r"/|/(config|theme\.css|robots\.txt|favicon\.ico|healthz|readyz|metrics|info|api|lessons|faithfulness)/?|/lessons/\d{1,6}"
        r"|/(openapi\.json|app_id|startup-events|mcp|mcp/schema)/?"
        r"|/(assets|static|vit_demo)/.+|/file[=/].+|/heartbeat/\w+|/queue/data|/call/(v2/)?\w+/\w+/?",
        re.ASCII | re.DOTALL,
    ),
    "POST": re.compile(
        r"/upload|/vit_demo/(request|live|photo)|/(queue/join|cancel|reset|mcp)/?|/call/(v2/)?\w+/?", re.ASCII
    ),
    "DELETE": re.compile(r"/mcp/?"),
}
"""The routes that the page, Gradio's clients and agents use, by method; all others are closed."""

FILE = re.compile(r"/+file[=/](.*)", re.IGNORECASE | re.DOTALL)
"""The route by which Gradio sends a file; if its name were a URL, Gradio would download that."""

LARGE_ASSET = re.compile(r"/+assets/(Plotly|Altair)", re.IGNORECASE)
"""Scripts of Gradio that the page does not load, and that take a quarter of a second to compress."""

VISITOR = "vit_demo.visitor"  # where the scope of a request that the guard has seen holds the address of its visitor

_VISITOR_HEADER = "x-vit-demo-visitor"
_SECRET = token_hex(16)  # only this process knows it, so no visitor can pretend to be another

_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[\w.-]+)(:\d{1,5})?", re.ASCII | re.IGNORECASE)
_RANGE = re.compile(r"bytes=\d{0,15}-\d{0,15}", re.ASCII)


def check_address(scope: Scope, path: str) -> None:
    """Refuses closed routes, files that are not uploads, and long paths and headers, by ``RequestRefused``.

    Here and below, ``path`` is the path of the request without Gradio's prefix.
    """
    file = FILE.match(path)
    # The path alone decides, because a look-up would take longer for a file that exists.
    is_foreign = file is not None and not uploads.is_upload_path(file[1])
    asked = {"HEAD": ["GET"], "OPTIONS": OPEN_ROUTES}.get(scope["method"], [scope["method"]])
    is_open = any(OPEN_ROUTES[method].fullmatch(path or "/") for method in asked if method in OPEN_ROUTES)
    if not is_open or is_foreign or LARGE_ASSET.match(path):
        raise RequestRefused(404, "Not found.")
    segments = [segment.encode(errors="replace") for segment in path.split("/")]
    longest = MAX_PATH_LENGTH if path.startswith("/vit_demo/see/") else MAX_SEGMENT_LENGTH  # a drawing, no file
    if max(map(len, segments)) > longest or sum(map(len, segments)) > MAX_PATH_LENGTH:
        raise RequestRefused(404, "Not found.")
    query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
    if path in ("", "/") and any(query.get("page", ())):
        raise RequestRefused(404, "Not found.")
    if any(len(value) > MAX_HEADER_LENGTH and name != b"cookie" for name, value in scope["headers"]):
        raise RequestRefused(431, f"A request header is longer than {MAX_HEADER_LENGTH} characters: shorten it.")


def clean_headers(scope: Scope, path: str) -> None:
    """Drops headers that mislead Gradio or cause needless work.

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
    scope["headers"] = [pair for pair in scope["headers"] if pair[0] not in dropped and pair != (b"host", b"")]
    if not headers.get("host"):  # for instance in health checks by HTTP/1.0
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
        # Otherwise a site could read everything here by letting its own name point to this machine.
        raise RequestRefused(421, "Open this page at localhost; behind a proxy, start it with VIT_DEMO_PROXY=1.")
    if is_change(scope) and _is_foreign(headers):
        raise RequestRefused(403, "Pages of other sites may not use this server: see VIT_DEMO_ALLOWED_ORIGINS.")
    if public := headers.get("x-forwarded-host"):  # beside which Gradio forgets the path below which the page is
        others = [pair for pair in scope["headers"] if pair[0] not in (b"host", b"x-forwarded-host")]
        scope["headers"] = [*others, (b"host", public.partition(",")[0].strip().encode())]


def set_root(scope: Scope) -> None:
    """Makes ``root_path`` the path below which visitors see the page, whether or not a proxy has taken it off ``path``.

    ``settings.root_path`` says it, or the server or application that calls this one.
    """
    outer = scope.get("root_path", "")
    root = urlsplit(settings.root_path()).path or "/" + outer.strip("/")
    path = scope["path"].removeprefix(outer)
    if root != "/" and f"{path}/".startswith(f"{root}/"):
        path = path.removeprefix(root)
    scope["root_path"] = root.rstrip("/")
    scope["path"] = scope["root_path"] + path


def path_of(scope: Scope) -> str:
    """The path of a request without Gradio's prefix, and without the path below which the page is."""
    return scope["path"].removeprefix(scope.get("root_path", "")).removeprefix("/gradio_api")


def is_change(scope: Scope) -> bool:
    """Whether a request may change something, and may have a body."""
    return scope["method"] in ("POST", "PUT", "PATCH", "DELETE")


def _is_foreign(headers: Headers) -> bool:
    """Whether a browser sends a request for a page of another origin, which only browsers name.

    They leave out ``Sec-Fetch-Site`` towards plain http, except on their own machine.
    """
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    host = headers.get("x-forwarded-host", headers["host"]).partition(",")[0].strip()
    is_same = origin is None or origin.partition("://")[2].lower() == host.lower()
    return origin not in settings.allowed_origins() and not (site in ("same-origin", "none") if site else is_same)


def on_behalf_of(address: str, call: str) -> dict[str, str]:
    """The headers of a request that this process sends to itself when a visitor calls a tool."""
    return {_VISITOR_HEADER: f"{_SECRET} {call} {address}".strip()}


def tool_call(scope: Scope) -> tuple[str, str] | None:
    """The name of a tool call and its caller's address, if the request is one that ``on_behalf_of`` marks."""
    secret, _, about = Headers(scope=scope).get(_VISITOR_HEADER, "").partition(" ")
    call, _, address = about.partition(" ")
    return (call, address) if compare_digest(secret.encode(), _SECRET.encode()) else None


def client_address(scope: Scope) -> str:
    """The visitor who sends a request, as an IPv4 address or an IPv6 network; "" for a program of this machine.

    Such a program may be a proxy that was not announced, so it has no limits. Each announced proxy appends the address
    of its client; the outermost one names the visitor.
    """
    if (call := tool_call(scope)) is not None:
        return call[1]
    address, port = scope.get("client") or ("", 0)
    if count := settings.num_proxies():
        forwarded = ",".join(Headers(scope=scope).getlist("x-forwarded-for")).split(",")
        address = forwarded[-count:][0].strip() or address
    found = _parse(address)
    # By default uvicorn replaces a local client by the address in a header, with port 0.
    if not count and (not port or (found is not None and found.is_loopback)):
        return ""
    if found is None:
        return "unknown"
    # With IPv6, a visitor has a whole network of 2^64 addresses.
    return str(found) if found.version == 4 else str(IPv6Network((found, 64), strict=False))


def _parse(text: str) -> IPv4Address | IPv6Address | None:
    """Parses an address with or without brackets, port or zone; IPv4 also if it is written as IPv6."""
    text = text.strip(' \t"')
    text = text[1:].partition("]")[0] if text.startswith("[") else text
    text = text.partition(":")[0] if text.count(":") == 1 else text
    try:
        found = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found
