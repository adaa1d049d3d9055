"""Requests of the page: results, maps, tests of a heatmap, tokens, the logit lens, and the models of its menu.

The page calls ``handle`` and gets the result, or the progress of its job and then sends the same request again. A
request contains everything that is needed to compute its result, so nothing has to be started or cancelled, equal
requests share a job, and any server can respond.
"""

from collections.abc import Hashable
from typing import Any, TypeVar

from vit_demo.errors import ImageError, InputError
from vit_demo.inference.cache import ByteCache
from vit_demo.sentences import marked
from vit_demo.service.engine import get_engine
from vit_demo.service.job import Cancelled, Job
from vit_demo.service.limits import job_bytes
from vit_demo.web.catalog import visitor_presets
from vit_demo.web.catalog.menu import menu_entries, model_entry
from vit_demo.web.catalog.method_docs import BOARD, method_html
from vit_demo.web.guard.metrics import cache_bytes
from vit_demo.web.requests import parse
from vit_demo.web.requests.kinds import KINDS
from vit_demo.web.requests.maps import MapRequest, RequestedResult
from vit_demo.web.requests.packing import message_of, pack
from vit_demo.web.requests.teaching import TeachRequest, open_link, teach_job
from vit_demo.web.requests.training import archive, handle_training
from vit_demo.weights import Preset

T = TypeVar("T")

POLL_SECONDS = 0.4
"""How long a call waits for the result before it returns the progress."""

POLLS_WITHOUT_PROGRESS = 3
"""How often a call waits for a job without progress, such as a quick one in the queue.

Waiting costs a busy server less than another request. But a browser has only six connections, which requests for an
earlier picture occupy until they return.
"""

REPLY_CACHE_BYTES = 16 << 20
"""Size of the cache of compressed replies."""

NAMES = frozenset({*KINDS, "method_docs", "models", "train", "model", "teach"})
"""All kinds of requests."""

_replies: ByteCache[bytes] = ByteCache(REPLY_CACHE_BYTES, len)
cache_bytes.labels("replies").set_function(lambda: _replies.num_bytes)


async def handle(request: Any) -> bytes:
    """Returns the result of a request, or the progress of its job.

    Args:
        request: ``kind``, one of ``KINDS``, with the ``source`` of the result (see ``payload.source_of``) and the
            fields of that kind; or ``{"kind": "method_docs", "method": ...}``; or ``{"kind": "model", "name": ...}``,
            which downloads a model if necessary and describes it for the menu, or with ``taught``, the text of a link,
            makes it; or ``{"kind": "models"}``, the menu; or ``{"kind": "teach", ...}``, see ``TeachRequest``; or
            ``{"kind": "train", ...}``, see ``handle_training``; or ``{"kind": "train", "download": name}``.

    Returns:
        A packed reply: ``{"result": ...}``; ``{"error": message}``, with ``{"retry": False}`` if the same request
        would fail again; or ``{"done", "total"}`` while the result is being computed, with a ``total`` of 0 if it is
        not known. In that case the caller sends the same request again.
    """
    try:
        reply = await _reply_or_job(request)
        return await _poll(reply) if isinstance(reply, Job) else reply
    except Unfinished as progress:
        done, total = progress.args
        return pack({"done": done, "total": total})
    except Cancelled:
        return pack({"done": 0, "total": 0})
    except Exception as error:
        # The same picture would be refused again; any other cause may be gone by then.
        return pack({"error": marked(message_of(error))} | ({"retry": False} if isinstance(error, ImageError) else {}))


class Unfinished(Exception):
    """A job is still running; the arguments are ``done`` and ``total``."""


async def _poll(job: Job[T]) -> T:
    """Waits for the result of a job as long as a call may; then raises ``Unfinished``."""
    for _ in range(POLLS_WITHOUT_PROGRESS):
        if await job.poll_async(POLL_SECONDS):
            return job.result()
        if job.total:
            break
    raise Unfinished(job.done, job.total)


async def _find_preset(name: str) -> Preset:
    """A preset for a visitor; a download takes several requests."""
    preset = visitor_presets.ready(name)
    return await _poll(visitor_presets.prepare(name)) if preset is None else preset


async def _model(name: Any, taught: Any) -> dict[str, Any]:
    """The entry of a model for the menu, by its name or by the text of a link that was taught."""
    if taught is not None:
        return model_entry(await open_link(taught, _find_preset))
    known = visitor_presets.model_name(name)
    return model_entry(await _find_preset(known), known)


async def _reply_or_job(request: Any) -> bytes | Job[bytes]:
    if not isinstance(request, dict):
        raise InputError("The request is not an object: reload the page.")
    kind = parse.short_string(request.get("kind"), "kind of request")
    if kind == "method_docs":
        html = method_html(parse.short_string(request.get("method"), "method"), BOARD)
        return pack({"result": {"html": html}})
    if kind == "models":
        return pack({"result": {"models": menu_entries()}})
    if kind == "train" and (download := request.get("download")) is not None:
        network = parse.short_string(download, "network")
        return get_engine().jobs.submit(("archive", network), lambda: pack({"result": archive(network)}), "files")
    if kind == "train":
        return pack({"result": await handle_training(request)})
    if kind == "teach":
        wanted = TeachRequest.parse(request)
        return teach_job(wanted, await _find_preset(wanted.name))
    if kind == "model":
        return pack({"result": await _model(request.get("name"), request.get("taught"))})
    if kind not in KINDS:
        raise InputError(f"There is no request {kind!r}: choose one of {', '.join(KINDS)}.")
    source = parse.ResultRequest.parse(request.get("source"))
    parsed = KINDS[kind].parse(
        {name: value for name, value in request.items() if value is not None} | {"source": source}
    )
    key: Hashable = ("request", source.key, kind, parsed)
    if (reply := _replies.get(key)) is not None:
        return reply
    engine = get_engine()
    preset = await _find_preset(source.name)
    if source.words:
        preset = preset.with_words(source.words)
    size = preset.check_patch_size(source.patch_size)
    requested = RequestedResult(engine, preset, source)
    slow = KINDS[kind].many_passes or (isinstance(parsed, MapRequest) and parsed.is_slow)

    def work() -> bytes:
        _replies.put(key, packed := pack({"result": KINDS[kind].compute(requested, parsed)}))
        return packed

    return engine.jobs.submit(key, work, source.source.pool(preset, slow=slow), job_bytes(preset, size, slow=slow))
