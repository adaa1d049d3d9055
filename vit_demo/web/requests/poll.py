"""Requests of the page: results, maps, tests of a heatmap, tokens, the models of its menu, and so on.

The page calls ``handle`` and gets the result, or the progress of its job and then sends the same request again. A
request contains everything that is needed to compute its result, so nothing has to be started or cancelled, equal
requests share a job, and any server can respond.
"""

from collections.abc import Generator, Hashable
from typing import Any

from vit_demo.errors import ImageError, InputError
from vit_demo.inference.cache import ByteCache
from vit_demo.sentences import marked
from vit_demo.service.engine import get_engine
from vit_demo.service.job import Cancelled, Job, Turn
from vit_demo.web.guard.metrics import cache_bytes
from vit_demo.web.requests import parse
from vit_demo.web.requests.kinds import KINDS, OtherKind
from vit_demo.web.requests.live import live_job, page_of
from vit_demo.web.requests.maps import MapRequest, RequestedResult
from vit_demo.web.requests.packing import message_of, pack
from vit_demo.web.requests.waiting import Unfinished, find_preset, wait_for
from vit_demo.weights import costs

REPLY_CACHE_BYTES = 16 << 20  # size of the cache of compressed replies

_replies: ByteCache[bytes] = ByteCache(REPLY_CACHE_BYTES, len)
cache_bytes.labels("replies").set_function(lambda: _replies.num_bytes)


async def handle(request: Any) -> bytes:
    """Returns the result of a request, or the progress of its job.

    Args:
        request: ``kind``, one of ``KINDS``, with the fields of that kind and, if it is about a result, its ``source``
            (see ``payload.source_of``). A ``result`` with ``live``, the name of a page, is for a picture that changes:
            it is not kept, and dropped when the page sends another; see ``live``.

    Returns:
        A packed reply: ``{"result": ...}``; ``{"error": message}``, with ``{"retry": False}`` if the same request
        would fail again; or ``{"done", "total"}`` while the result is being computed, with a ``total`` of 0 if it is
        not known, and of a search the patches that it has just ``tried`` to do without and the ``fewest`` that it has
        found so far. In that case the caller sends the same request again.
    """
    try:
        reply = await _reply_or_job(request)
        return await wait_for(reply) if isinstance(reply, Job) else reply
    except Unfinished as progress:
        done, total, tried, fewest = progress.args
        return pack({"done": done, "total": total} | ({"tried": tried, "fewest": fewest} if tried else {}))
    except Cancelled:
        return pack({"done": 0, "total": 0})
    except Exception as error:
        # The same picture would be refused again; any other cause may be gone by then.
        return pack({"error": marked(message_of(error))} | ({"retry": False} if isinstance(error, ImageError) else {}))


async def _reply_or_job(request: Any) -> bytes | Job[bytes]:
    if not isinstance(request, dict):
        raise InputError("The request is not an object: reload the page.")
    name = parse.short_string(request.get("kind"), "kind of request")
    kind = KINDS.get(name)
    if kind is None:
        raise InputError(f"There is no request {name!r}: choose one of {', '.join(KINDS)}.")
    page = page_of(request)
    if isinstance(kind, OtherKind):
        answer = await kind.answer(parse.checked(kind.fields, request))
        return answer if isinstance(answer, Job) else pack({"result": answer})
    source = parse.ResultRequest.parse(request.get("source"), live=bool(page))
    fields = parse.checked(kind.fields, request, source)
    key: Hashable = ("request", source.key, name, fields)
    if not page and (reply := _replies.get(key)) is not None:
        return reply
    engine, compute = get_engine(), kind.compute
    preset = await find_preset(source.preset)
    if source.words:
        preset = preset.with_words(source.words)
    size = preset.check_patch_size(source.patch_size)
    cost = costs.many_passes if isinstance(fields, MapRequest) and fields.is_slow else kind.cost
    turn = source.source.turn(preset, size, cost, live=bool(page))
    is_drawing = name == "result" and not source.dropped and not source.silent
    drawing = engine.drawing(source.source, preset, size, turn.pool) if is_drawing else None
    requested = RequestedResult(engine, preset, source, drawing, live=bool(page))

    def work() -> Generator[Turn, None, bytes]:
        found = compute(requested, fields)
        if isinstance(found, Generator):
            found = yield from found
        packed = pack({"result": found})
        if not page:
            _replies.put(key, packed)
        return packed

    if page:
        return live_job(page, source.key, work, turn)
    return engine.jobs.submit(key, work, *turn)
