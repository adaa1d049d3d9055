"""Requests to a running page as any program could send them, without Gradio's client."""

import gzip
import http.client
import io
import json
import secrets
import socket
from typing import Any
from urllib.parse import urlsplit

import gradio as gr
from starlette.types import ASGIApp

from vit_demo.web.catalog.example_digits import example_picture
from vit_demo.web.guard import security

from ..asynchronous import PATIENCE, a_moment, until


def guarded(app: ASGIApp) -> ASGIApp:
    """An application behind the guard, as Starlette puts it there."""
    for part in reversed(security.guard(gr.Blocks())):
        app = part.cls(app, *part.args, **part.kwargs)
    return app


def request(page, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, dict[str, str], bytes]:
    address = urlsplit(page.local_url)
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=PATIENCE)
    if isinstance(body, dict):
        body, headers = json.dumps(body).encode(), {"Content-Type": "application/json", **headers}
    connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
    response = connection.getresponse()
    found = response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
    connection.close()
    return found


def connect(page) -> socket.socket:
    """A connection of its own, for what ``http.client`` would not send."""
    address = urlsplit(page.local_url)
    return socket.create_connection((address.hostname, address.port), timeout=PATIENCE)


def is_open(connection: socket.socket) -> bool:
    """Whether a connection has not ended a moment later, after whatever it still has to read."""
    a_moment()
    connection.setblocking(False)
    try:
        while connection.recv(65536):
            pass
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False


def event(page, number: int, data: list[Any]) -> str:
    """Calls an event by its number; returns everything in its stream, or the status and body if it is refused."""
    session = secrets.token_hex(8)
    body = {"data": data, "fn_index": number, "session_hash": session, "trigger_id": None}
    status, _, reply = request(page, "POST", "/gradio_api/queue/join", body)
    if status != 200:
        return f"{status} {reply.decode()}"
    address = urlsplit(page.local_url)
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=PATIENCE)
    connection.request("GET", f"/gradio_api/queue/data?session_hash={session}")
    stream, messages = connection.getresponse(), []
    for line in stream:
        if line.startswith(b"data:"):
            message = json.loads(line[5:])
            if message["msg"] in ("process_generating", "process_completed", "unexpected_error"):
                messages.append(message)
            if message["msg"] in ("process_completed", "unexpected_error", "close_stream"):
                break
    connection.close()
    outputs = [one.get("output") or {} for one in messages]
    return json.dumps(
        [[one["msg"], out.get("data"), out.get("error")] for one, out in zip(messages, outputs, strict=True)]
    )


def number_of(page, name: str) -> int:
    """The number of an endpoint's event."""
    return next(number for number, function in page.fns.items() if function.api_name == name)


def ask(page, fields: Any, **headers: str) -> tuple[int, bytes]:
    """Sends a request of the page once, a live one by its own route."""
    route = "live" if isinstance(fields, dict) and fields.get("live") else "request"
    body, headers = json.dumps(fields).encode(), {"Content_Type": "application/json", **headers}
    status, found, reply = request(page, "POST", f"/gradio_api/vit_demo/{route}", body, **headers)
    return status, gzip.decompress(reply) if found.get("content-encoding") == "gzip" else reply


def wait_until_idle(page) -> None:
    """Waits until no event is in Gradio's queue or running."""
    until(lambda: not len(page._queue) and not any(page._queue.active_jobs))


def upload(page, *files: bytes, name: str = "a.png", query: str = "") -> tuple[int, bytes]:
    boundary = secrets.token_hex(8)
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="files"; filename="{name}"\r\n\r\n'.encode()
    body = b"".join(head + data + b"\r\n" for data in files) + f"--{boundary}--\r\n".encode()
    status, _, reply = request(
        page, "POST", f"/gradio_api/upload{query}", body, Content_Type=f"multipart/form-data; boundary={boundary}"
    )
    return status, reply


def png(side: int = 40) -> bytes:
    buffer = io.BytesIO()
    example_picture(3).resize((side, side)).save(buffer, "PNG")
    return buffer.getvalue()
