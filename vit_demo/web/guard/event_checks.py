"""Checks of what a request asks of Gradio's API, and the end of results that nobody collects."""

import re
from functools import cached_property
from typing import Any

import gradio as gr
from gradio.queueing import Queue

from vit_demo.web.guard.bodies import RequestRefused
from vit_demo.web.guard.headers import client_address
from vit_demo.web.guard.visitor import streams

MAX_EVENTS_OF_ONE = 16  # unfinished events of one address
MAX_MESSAGES = 64  # messages that a session may leave uncollected; an event has three or four

MAX_SESSIONS = 1000  # beyond, ended sessions are forgotten at once; of over 2,000, Gradio drops the oldest
SESSION = re.compile(r"[\w-]{1,64}", re.ASCII)  # the name of a session, which its client chooses

NO_ENDPOINT = "There is no such endpoint: see /gradio_api/info."


class EventChecks:
    """Refuses events that the API does not have; Gradio would log a traceback or worse.

    Each check takes the JSON body of a request as ``data`` and raises ``RequestRefused``.
    """

    def __init__(self, page: gr.Blocks) -> None:
        self._page = page

    def check_session(self, data: Any) -> None:
        """Refuses a session with a name that ``SESSION`` does not match."""
        session = _fields(data).get("session_hash")
        if session is not None and not (isinstance(session, str) and SESSION.fullmatch(session)):
            raise RequestRefused(400, "A session_hash has up to 64 letters, digits, hyphens and underscores.")

    def check_event(self, path: str, data: Any) -> bool:
        """Refuses an event that does not exist, or whose session has not collected earlier results.

        Removes ``trigger_id``, which makes Gradio change a component of the page; returns whether the body was changed.
        """
        fields = _fields(data)
        if path.startswith("/call/v2/"):
            self._check_arguments(path.rstrip("/").rpartition("/")[2], fields)
            self.check_room({})  # on this route all fields are arguments, and none is the session
            return False
        self._check_index(path, fields.get("fn_index"))
        self.check_room(data)
        return fields.pop("trigger_id", None) is not None

    def check_room(self, data: Any) -> None:
        """Refuses to begin or cancel an event in a session that has not collected earlier results."""
        messages = self._page._queue.pending_messages_per_session
        session = _fields(data).get("session_hash") or ""
        if session in messages and messages[session].qsize() >= MAX_MESSAGES:
            raise RequestRefused(429, "Collect the results of earlier requests first: GET /gradio_api/queue/data.")
        if len(messages) > MAX_SESSIONS:
            forget_ended(self._page)

    def check_stream(self, name: str) -> None:
        """Refuses a stream of results that do not exist, or that another stream collects."""
        queue = self._page._queue
        if streams.is_open(name) or not (name in queue.pending_messages_per_session or _is_pending(queue, name)):
            raise RequestRefused(404, "There are no results to collect, or another stream collects them.")

    def check_share(self, address: str) -> None:
        """Refuses a further event of an address that has ``MAX_EVENTS_OF_ONE`` unfinished ones."""
        if not address:
            return
        queue = self._page._queue
        running = [event for events in queue.active_jobs if events for event in events]
        waiting = [event for waiting in queue.event_queue_per_concurrency_id.values() for event in waiting.queue]
        scopes = [event.request.scope for event in (*running, *waiting) if event.request is not None]
        if sum(client_address(scope) == address for scope in scopes) >= MAX_EVENTS_OF_ONE:
            raise RequestRefused(429, f"You have {MAX_EVENTS_OF_ONE} unfinished requests: wait for one of them.")

    def _check_index(self, path: str, index: Any) -> None:
        name = path.rstrip("/").rpartition("/")[2]
        by_name = not path.startswith("/queue/join") and any(fn.api_name == name for fn in self._page.fns.values())
        by_index = isinstance(index, int) and not isinstance(index, bool) and index in self._page.fns
        if not (by_index or (by_name and index is None)):
            raise RequestRefused(404, NO_ENDPOINT)

    def _check_arguments(self, name: str, arguments: dict[str, Any]) -> None:
        endpoint = self._endpoints.get(f"/{name}")
        if endpoint is None:
            raise RequestRefused(404, NO_ENDPOINT)
        parameters = endpoint["parameters"]
        has_default = {parameter["parameter_name"]: parameter.get("parameter_has_default") for parameter in parameters}
        required = {name for name, default in has_default.items() if not default}
        if not required <= arguments.keys() <= has_default.keys():
            raise RequestRefused(422, f"/{name} takes an object with {', '.join(has_default) or 'no fields'}.")

    @cached_property
    def _endpoints(self) -> dict[str, Any]:
        return self._page.get_api_info()["named_endpoints"]


def _fields(data: Any) -> dict[str, Any]:
    return data if isinstance(data, dict) else {}


def _is_pending(queue: Queue, event: str) -> bool:
    return any(event in events for events in queue.pending_event_ids_session.values())


def forget_ended(page: gr.Blocks) -> None:
    """Forgets the sessions in which no event is under way and no stream is open; to be called in the event loop."""
    queue = page._queue
    under_way = {event.session_hash for event in queue.event_ids_to_events.values()}
    for session in [*queue.pending_messages_per_session, *queue.pending_event_ids_session]:
        if session not in under_way and not streams.is_open(session):
            queue.pending_messages_per_session.pop(session, None)
            queue.pending_event_ids_session.pop(session, None)
