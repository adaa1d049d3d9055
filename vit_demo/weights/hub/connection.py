"""Requests to the Hub: given up in time with their connections, and what went wrong as one sentence."""

from __future__ import annotations

import logging
import os
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import suppress
from contextvars import ContextVar, copy_context
from pathlib import Path
from typing import Any, TypeVar

from huggingface_hub import constants, errors, get_token
from huggingface_hub.utils import get_session

from vit_demo.checks import check_proxies, is_address, is_behind_proxy
from vit_demo.errors import CheckpointError, PresetError
from vit_demo.weights.untrusted_text import quote

T = TypeVar("T")

FALLBACK = "choose the bundled photos-tiny (Photos, 50 everyday things)"
SILENCE = 40.0  # seconds to wait for a whole response header, or for more of a file
PATH_PART = re.compile(r"[\w-][\w.+-]{0,127}", re.ASCII)  # a hash or a commit, as the Hub names it in a header
PORTAL = "What answers is not the Hub: log in to this network."
BUSY = (408, 425, 429)  # and all from 500


class UnreachableError(CheckpointError):
    """There is no Hub, or none that answers now."""


class Call:
    """A call of the Hub client in a thread of its own.

    Attributes:
        has_hash: Whether the Hub has named a hash, so that the file may come from anywhere.
        size: The file's size, as far as the Hub has said it.
        heard: When something arrived last.
        is_over: Whether it has been given up.
        streams: Those of its connections.
    """

    def __init__(self, has_hash: bool = False, size: int | None = None) -> None:
        self.has_hash, self.size, self.heard = has_hash, size, time.monotonic()
        self.is_over, self.streams = False, list[Any]()

    def run(self, function: Callable[[], T]) -> T:
        """Runs a function of the Hub client, and gives it up with its connections if the Hub keeps it waiting.

        The client limits the time between two bytes, so a response that drips would last for ever. If nothing arrives
        for ``SILENCE`` seconds, this raises ``TimeoutError``.
        """
        future: Future[T] = Future()

        def run() -> None:
            _call.set(self)
            try:
                future.set_result(function())
            except BaseException as error:
                future.set_exception(error)

        threading.Thread(target=copy_context().run, args=(run,), name="hub", daemon=True).start()
        while not wait([future], timeout=0.5).done:
            if time.monotonic() - self.heard > SILENCE:
                self.is_over = True
                for stream in self.streams:
                    with suppress(Exception):  # it may be closed
                        stream.get_extra_info("socket").shutdown(socket.SHUT_RDWR)
                raise TimeoutError("The Hub kept this process waiting.")
        return future.result()

    def traced(self, event: str, about: dict[str, Any]) -> None:
        """Notes a connection, which is for this call alone, once it is made."""
        if self.is_over:
            raise TimeoutError("This call was given up.")
        if event.endswith(("connect_tcp.complete", "start_tls.complete")):
            self.streams.append(about["return_value"])


_making = threading.Lock()
_call: ContextVar[Call | None] = ContextVar("_call", default=None)


def endpoint() -> str:
    """The address of the Hub."""
    return os.environ.get("HF_ENDPOINT") or constants.ENDPOINT


def prepare() -> None:
    """Checks what the environment says of the network, and has the client's session watched."""
    if not is_address(endpoint()):
        raise PresetError(f"HF_ENDPOINT is {endpoint()!r:.60}: write it like https://huggingface.co.")
    check_proxies()
    session = _session()
    if _check_response not in session.event_hooks["response"]:
        hooks = session.event_hooks
        session.event_hooks = {
            "request": [*hooks["request"], _watch],
            "response": [*hooks["response"], _check_response],
        }


def _session() -> Any:
    """The client's session; only while it is made, ``REQUESTS_CA_BUNDLE`` is what ``SSL_CERT_FILE`` is otherwise."""
    bundle = os.environ.get("REQUESTS_CA_BUNDLE", "")
    name = "SSL_CERT_DIR" if Path(bundle).is_dir() else "SSL_CERT_FILE"
    with _making:
        if not bundle or name in os.environ:
            return get_session()
        os.environ[name] = bundle
        try:
            return get_session()
        finally:
            del os.environ[name]


def _watch(request: Any) -> None:
    if (call := _call.get()) is not None:
        request.headers["Connection"] = "close"
        request.extensions = {**request.extensions, "trace": call.traced}


def _check_response(response: Any) -> None:
    """Refuses headers that would become paths outside the cache, and what another host sends that no hash tells."""
    for name in ("etag", "x-linked-etag", "x-repo-commit"):
        value = response.headers.get(name, "").removeprefix("W/").strip('"')
        if value and not PATH_PART.fullmatch(value):
            raise CheckpointError(
                "The Hub sent {0} as {1}, which is not valid: use another mirror.", quote(value), name
            )
    call, request = _call.get(), response.request
    if call is not None and request.method == "GET" and _is_elsewhere(request) and not call.has_hash:
        raise CheckpointError("The Hub sent a file without a hash from another host: use another mirror.")


def _is_elsewhere(request: Any) -> bool:
    """Whether a request has gone to another host than the Hub's, as that for a large file."""
    return bool(request.url.netloc != type(request.url)(endpoint()).netloc)


def _causes(error: BaseException) -> list[BaseException]:
    """An error and what led to it, the first of these last."""
    causes = [error]
    while (cause := causes[-1].__cause__ or causes[-1].__context__) and len(causes) < 9:
        causes.append(cause)
    return causes


def response_of(error: BaseException) -> Any:
    """The answer that was refused, if an error of the Hub client is about one."""
    found = (getattr(one, "response", None) for one in _causes(error))
    return next((one for one in found if one is not None), None)


def check_token() -> None:
    """``PresetError`` if the token of the Hub that would be sent cannot be."""
    try:
        token = get_token()
    except (OSError, ValueError):
        token = " "
    if token and not re.fullmatch("[!-~]+", token):
        raise PresetError("The token of the Hub cannot be sent: log in again with `hf auth login`, or unset HF_TOKEN.")


def refusal(repo: str, error: Exception, *, trusted: bool) -> CheckpointError:
    """What an error of the Hub client means."""
    response = response_of(error)
    status = getattr(response, "status_code", 0)
    is_store = response is not None and _is_elsewhere(response.request)
    if status == 511:
        return _unreachable(repo, PresetError(PORTAL), trusted)
    if status in BUSY or status >= 500 or is_store:
        why = "the Hub is busy" if status in BUSY or status >= 500 else "its store of large files refuses it"
        why += ": try again in a few minutes"
        return UnreachableError(f"{{0}} cannot be downloaded, because {why}, or {FALLBACK}.", repo)
    if isinstance(error, errors.GatedRepoError) or status == 403:
        if not trusted:
            return CheckpointError("{0} is not open to everyone: choose another model.", repo)
        page = f"{endpoint()}/{repo}"
        return CheckpointError("{0} is gated: ask for access at {1}, and log in with `hf auth login`.", repo, page)
    if status == 401 and "authorization" in response.request.headers:
        return CheckpointError("The Hub does not accept your token: log in again with `hf auth login`.")
    if status == 401 or isinstance(error, errors.RepositoryNotFoundError):
        remedy = "check its name, or log in with `hf auth login`" if trusted else "check its name"
        public = "accessible to you" if trusted else "public"
        return CheckpointError(f"{{0}} is not on the Hub, or not {public}: {remedy}.", repo)
    if status >= 400:
        why = "because the Hub answers with status {1}"
        return UnreachableError(f"{{0}} cannot be downloaded, {why}: {FALLBACK}.", repo, status)
    return _unreachable(repo, error, trusted)


def _unreachable(repo: str, error: Exception, trusted: bool) -> UnreachableError:
    """Why there was no answer; the operator's own settings are told to nobody else, but logged."""
    causes = _causes(error)
    told = " ".join(f"{type(one).__name__} {one}" for one in causes)
    why, own = "the Hub does not respond", ""
    if isinstance(error, errors.OfflineModeIsEnabled):
        why, own = "this machine is set to work offline", "HF_HUB_OFFLINE is set: go online to download it."
    elif isinstance(error, PresetError):
        own = str(error)
    elif any(isinstance(one, ssl.SSLError) for one in causes) and not re.search("CERT|X509|PEM", told):
        own = "What answers does not speak HTTPS: check HF_ENDPOINT, HTTPS_PROXY and ALL_PROXY."
    elif any(isinstance(one, ssl.SSLError | FileNotFoundError | IsADirectoryError) for one in causes) or "CERT" in told:
        own = "The Hub's certificate is not trusted here: set SSL_CERT_FILE to a file of those that your network needs."
    elif "proxy" in told.lower() or ("Connect" in told and is_behind_proxy(endpoint())):
        own = "The proxy of this machine does not answer as one: check HTTPS_PROXY and ALL_PROXY."
    if own:  # for the operator; a visitor can do nothing about it
        logging.getLogger(__name__).warning("%s is not downloaded. %s", repo, own)
    if own and trusted and why == "the Hub does not respond":
        return UnreachableError("{0} cannot be downloaded. {1}", repo, own)
    return UnreachableError(f"{{0}} cannot be downloaded, because {why}: go online, or {FALLBACK}.", repo)
