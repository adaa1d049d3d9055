"""A stand-in for the service that lends GPUs on ZeroGPU: it grants and records every request."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit


@contextmanager
def device_api() -> Iterator[tuple[str, list[tuple[str, dict[str, str]]]]]:
    """Serves until the block ends; gives the address and the growing list of (path, parameters)."""
    requests: list[tuple[str, dict[str, str]]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            address = urlsplit(self.path)
            requests.append((address.path, dict(parse_qsl(address.query))))
            idle = any(path == "/release" for path, _ in requests)  # from the second loan on a fork is waiting
            answer = {"idle": idle, "nvidiaIndex": 0, "nvidiaUUID": "none", "allowToken": f"loan-{len(requests)}"}
            body = json.dumps(answer if address.path == "/schedule" else {}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", requests
    finally:
        server.shutdown()
        server.server_close()
