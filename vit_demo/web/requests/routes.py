"""The page's own routes, beside Gradio's API: one for its requests, one for photos; and the one for clients' uploads.

``web/guard`` has checked the length, the rate and the sender of what arrives.
"""

import json
from collections.abc import AsyncIterator

from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from vit_demo.web.guard import uploads
from vit_demo.web.guard.bodies import RequestRefused
from vit_demo.web.requests.kinds import KINDS
from vit_demo.web.requests.packing import HEADERS
from vit_demo.web.requests.poll import handle

ONE_FILE = "An upload is one file and nothing else: send it again."
NOT_STORED = "The file could not be stored, because the server’s disk is full or cannot be written: try again later."
PIECE_BYTES = 1 << 20


def routes(prefix: str) -> list[Route]:
    """The routes of the page below a prefix, and ``/gradio_api/upload`` in place of Gradio's."""
    paths = {
        f"{prefix}/request": answer,
        f"{prefix}/live": answer_live,
        f"{prefix}/photo": take_photo,
        "/gradio_api/upload": take_form,
    }
    return [Route(path, endpoint, methods=["POST"]) for path, endpoint in paths.items()]


async def answer(request: Request) -> Response:
    """The reply to a request of the page; see ``poll.handle``."""
    fields = json.loads(await request.body() or b"null")
    if isinstance(fields, dict) and (kind := str(fields.get("kind"))) in KINDS:
        request.state.kind = kind
    if isinstance(fields, dict) and fields.get("live") is not None:
        fields["live"] = ""  # is refused: the guard counts the route of live requests apart
    return Response(await handle(fields), media_type="application/json", headers=HEADERS)


async def answer_live(request: Request) -> Response:
    """The reply to a live request; another one is refused here, as a live one is there."""
    request.state.kind = "live"
    fields = json.loads(await request.body() or b"null")
    reply = await handle({"live": "", **fields} if isinstance(fields, dict) else fields)
    return Response(reply, media_type="application/json", headers=HEADERS)


async def take_photo(request: Request) -> Response:
    """Stores a photo, which is the body; the reply is ``{"path": ...}``, for the field ``upload`` of a request."""
    return JSONResponse({"path": await _store(request.stream())})


async def take_form(request: Request) -> Response:
    """Stores the one file of a form, as Gradio's clients send it; the reply is ``[path]``."""
    try:
        async with request.form(max_files=1, max_fields=0) as form:
            files = [file for file in form.values() if isinstance(file, UploadFile)]
            if len(files) != 1:
                raise RequestRefused(400, ONE_FILE)
            return JSONResponse([await _store(_pieces(files[0]))])
    except OSError as error:
        raise RequestRefused(507, NOT_STORED) from error


async def _store(pieces: AsyncIterator[bytes]) -> str:
    try:
        return str(await uploads.store(pieces))
    except OSError as error:
        raise RequestRefused(507, NOT_STORED) from error


async def _pieces(file: UploadFile) -> AsyncIterator[bytes]:
    while piece := await file.read(PIECE_BYTES):
        yield piece
