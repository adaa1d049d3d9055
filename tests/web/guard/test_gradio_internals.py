"""What of Gradio is replaced, or relied on, without being documented: each fails here on a Gradio that differs.

``docs/architecture.md`` lists it. Run this file against a new release of Gradio before the requirement is raised.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import gradio as gr
import pytest
from gradio import queueing as gradio_queueing
from gradio import routes as gradio_routes
from gradio.mcp import GradioMCPServer
from gradio.state_holder import StateHolder

import vit_demo.web
from vit_demo.web.api import mcp
from vit_demo.web.guard import replacements
from vit_demo.web.guard.headers import OPEN_ROUTES
from vit_demo.web.guard.replacements import SafeBlocks

from ..http_requests import event

ROOT = Path(__file__).parents[3]
GRADIOS = {
    mcp.ToolServer: GradioMCPServer,
    replacements.OneState: StateHolder,
    SafeBlocks: gr.Blocks,
}


@pytest.mark.parametrize("ours", GRADIOS, ids=lambda kind: kind.__name__)
def test_each_method_that_is_replaced_is_there_and_takes_the_same(ours):
    replaced = {name: method for name, method in vars(ours).items() if callable(method) and not name.startswith("__")}
    for name, method in replaced.items():
        theirs = getattr(GRADIOS[ours], name)
        own = inspect.signature(method).parameters
        if not any(parameter.kind is parameter.VAR_POSITIONAL for parameter in own.values()):
            assert list(own) == list(inspect.signature(theirs).parameters), name
        assert inspect.iscoroutinefunction(method) == inspect.iscoroutinefunction(theirs), name


def test_all_visitors_share_one_state(page):
    states = page.app.state_holder
    assert isinstance(states, replacements.OneState)
    for _ in range(2):
        assert "process_completed" in event(page, 0, [])
    assert set(states.session_data) <= {""}


def test_what_is_read_of_the_queue_is_there(page):
    queue = page._queue
    assert isinstance(queue.pending_messages_per_session, dict) and isinstance(queue.pending_event_ids_session, dict)
    assert isinstance(queue.event_ids_to_events, dict) and isinstance(queue.active_jobs, list)
    assert all(isinstance(each.queue, list) for each in queue.event_queue_per_concurrency_id.values())


def test_the_queue_keeps_no_statistics(page):
    assert page._queue.ANALYTICS_MAX_EVENTS == 1 and page._queue.ANAYLTICS_CACHE_FREQUENCY > 10**9
    assert "self.ANAYLTICS_CACHE_FREQUENCY" in inspect.getsource(gradio_queueing.Queue.compute_analytics_summary)


def test_tools_are_served_by_our_server(page):
    assert type(page.mcp_server_obj) is mcp.ToolServer


def test_gradio_writes_no_stubs_into_the_package():
    assert not list(Path(vit_demo.web.__file__).parent.rglob("*.pyi"))


def test_every_route_of_gradio_is_known():
    """A new one is closed; it is looked at here, and opened if the page or a client needs it."""
    source = inspect.getsource(gradio_routes.App.create_app)
    found = re.findall(r"@(?:app|router)\.(get|post|head|put|delete|patch)\(\s*f?\"(/[^\"{]*)", source)
    open_ones = {path.rstrip("/") for method, path in found if _is_open(method, path)}
    assert open_ones == {
        "", "/config", "/info", "/openapi.json", "/static", "/assets", "/favicon.ico", "/file=", "/file", "/heartbeat",
        "/call", "/call/v2", "/queue/join", "/queue/data", "/cancel", "/upload", "/reset",
        "/app_id", "/startup-events", "/theme.css", "/robots.txt",
    }  # fmt: skip
    closed = {path.strip("/").partition("/")[0] for method, path in found if not _is_open(method, path)}
    assert closed == {
        "user", "login_check", "token", "dev", "login", "logout", "svelte", "runs", "run-history", "gradio_api",
        "custom_component", "proxy=", "stream", "run", "api", "queue", "upload_progress", "pwa_icon", "manifest.json",
        "monitoring", "process_recording", "vibe-edit", "undo-vibe-edit", "vibe-code", "vibe-starter-queries",
        "profiling", "component_server",
    }  # fmt: skip


def _is_open(method: str, path: str) -> bool:
    routes = OPEN_ROUTES.get({"head": "GET"}.get(method, method.upper()))
    return routes is not None and any(routes.fullmatch(path + end) for end in ("", "x", "x/x"))


def test_the_documents_list_what_is_replaced():
    (table,) = re.findall(
        r"## What is replaced in Gradio\n(.*?)(?:\n## |\Z)", (ROOT / "docs/architecture.md").read_text(), re.DOTALL
    )
    methods = {"GradioMCPServer", "StateHolder", "templates.env.loader", "preprocess_data", "postprocess_data"}
    assert [name for name in methods if name not in table] == []
