"""Counts requests for ``/metrics``, gives each an id, and logs it as a line of JSON if that is wanted."""

import logging
import math
import re
import time
from collections.abc import Iterator
from secrets import compare_digest, token_hex
from typing import Any

import prometheus_client as prometheus
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vit_demo.service.engine import get_engine
from vit_demo.web import settings
from vit_demo.web.guard.headers import OPEN_ROUTES, client_address, path_of, set_root
from vit_demo.web.guard.log import request_id

registry = prometheus.CollectorRegistry()
prometheus.ProcessCollector(registry=registry)
_requests = prometheus.Counter("vit_demo_requests", "Requests.", ("kind", "status"), registry=registry)
_seconds = prometheus.Histogram("vit_demo_request_seconds", "Time of requests.", ("kind",), registry=registry)
_refusals = prometheus.Counter("vit_demo_refusals", "Requests refused by the guard.", ("reason",), registry=registry)
cache_bytes = prometheus.Gauge("vit_demo_cache_bytes", "Bytes of caches and networks.", ("cache",), registry=registry)
cache_bytes.labels("networks").set_function(lambda: get_engine()._models.num_bytes)
cache_bytes.labels("results").set_function(lambda: get_engine()._results.num_bytes)

ROUTES = re.compile(r"/(assets|call|config|file|healthz|heartbeat|info|mcp|metrics|queue|readyz|static|upload)\b")
"""Routes that are kinds of requests; nothing below them, such as the path of an upload, is shown or logged."""


class _Jobs(Collector):
    def collect(self) -> Iterator[Metric]:
        jobs = get_engine().jobs
        queued = GaugeMetricFamily("vit_demo_queued_jobs", "Jobs that wait for a thread.", labels=["pool"])
        totals = {
            name: CounterMetricFamily(f"vit_demo_{name}", "Since the start.", labels=["pool"]) for name in jobs.TOTALS
        }
        for pool, queue in jobs.queues.items():
            queued.add_metric([pool], queue.count())
            for name, family in totals.items():
                family.add_metric([pool], jobs.totals[pool, name])
        return iter((queued, *totals.values()))


registry.register(_Jobs())


def metrics(request: Request) -> Response:
    """Prometheus' text for who knows the token ``VIT_DEMO_METRICS``; for others there is no such route."""
    token, given = settings.metrics_token(), request.headers.get("authorization", "")
    if not token or not compare_digest(given.encode(), f"Bearer {token}".encode()):
        return JSONResponse({"detail": "Not found.", "error": "Not found."}, 404)
    return Response(prometheus.generate_latest(registry), media_type=prometheus.CONTENT_TYPE_LATEST)


class Measured:
    """ASGI middleware: what it finds in ``scope["state"]``, ``kind`` and ``refusal``, others put there."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles a request; its response says its id, and after 429 and 503 when to try again."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        set_root(scope)
        about, started = scope.setdefault("state", {}), time.perf_counter()
        status, is_counted = 499, False  # until there is a response
        request_id.set(name := token_hex(8))

        def count() -> None:
            nonlocal is_counted
            if not is_counted:
                is_counted = True
                _count(scope, about, status, time.perf_counter() - started)

        async def send_measured(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status, headers = message["status"], MutableHeaders(scope=message)
                headers["x-request-id"] = name
                if status in (429, 503):
                    wait = math.ceil(getattr(about.get("refusal"), "wait", 5.0))
                    headers.setdefault("retry-after", str(max(1, wait)))
            elif message["type"] == "http.response.body" and not message.get("more_body"):
                count()  # before its end is sent: who has the whole response finds it counted
            await send(message)

        try:
            await self._app(scope, receive, send_measured)
        except Exception:
            status = 500
            raise
        finally:
            count()


def _count(scope: Scope, about: dict[str, Any], status: int, seconds: float) -> None:
    route = ROUTES.match(path := path_of(scope))
    kind = about.get("kind") or (route[1] if route else "other" if path.strip("/") else "page")
    refusal = str(about.get("refusal", ""))
    _requests.labels(kind, status).inc()
    _seconds.labels(kind).observe(seconds)
    if refusal:
        _refusals.labels(refusal.partition(":")[0]).inc()
    method = scope["method"] if scope["method"] in ("HEAD", "OPTIONS", *OPEN_ROUTES) else "other"
    fields = {"kind": kind, "method": method, "status": status, "ms": round(1000 * seconds, 1)}
    fields |= {"refusal": refusal, "address": client_address(scope)}
    logging.getLogger(__name__).info("request", extra={"fields": fields})
