"""Serves the components' JavaScript and the languages: files of this package at an address that holds their hash.

Gradio runs a component's `js_on_load` as the body of a function. Ours only imports `COMPONENT/main.js` and calls the
`mount` that it exports. An address is never reused for other content, so browsers may keep the modules for good, and
modules of two releases never mix.
"""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

FOLDER = Path(__file__).parent
LANGUAGES = FOLDER.parent / "languages"
MEDIA_TYPES = {"js": "text/javascript", "json": "application/json"}

PREFIX = "/gradio_api/vit_demo"
"""Gradio's own prefix: with server-side rendering, no other path reaches Python."""

NOT_FOUND = "There is no such module: reload the page."

LOAD = """\
const constants = CONSTANTS;
const root = new URL(window.gradio_config?.root || ".", document.baseURI);
const origin = root.hostname === location.hostname ? location.origin : root.origin; // as Gradio does behind a proxy
const url = origin + root.pathname.replace(/\\/$/, "") + "PATH";
import(url).then(({ mount }) => mount({ element, props, trigger, server, watch, upload, ...constants }), (error) => {
  console.error(error);
  element.textContent = `This part of the page could not be loaded from ${new URL(url).host}: reload the page.`;
});
"""


@cache
def modules() -> dict[str, bytes]:
    """The modules of all components by their path, such as `"stage/main.js"`."""
    return {path.relative_to(FOLDER).as_posix(): path.read_bytes() for path in sorted(FOLDER.glob("*/**/*.js"))}


@cache
def files() -> dict[str, bytes]:
    """The modules, and the languages, such as `"languages/es.json"`. Nothing else is ever served."""
    languages = sorted(LANGUAGES.glob("*.json"))
    return modules() | {f"languages/{path.name}": path.read_bytes() for path in languages}


@cache
def version() -> str:
    """A hash of the paths and contents of all files."""
    digest = hashlib.sha256()
    for name, content in files().items():
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:16]


def load_script(component: str, **constants: Any) -> str:
    """The `js_on_load` of a component.

    Args:
        component: Its folder, such as `"stage"`.
        **constants: JSON values that `mount` gets, too. They are part of the script because an update from Python makes
            the browser forget a component's own properties, which a later mount would miss.
    """
    path = f"{PREFIX}/{version()}/{component}/main.js"
    return LOAD.replace("PATH", path).replace("CONSTANTS", json.dumps(constants))


def preload_links() -> str:
    """HTML for the page's head: the browser fetches all modules at once, while Gradio is still starting."""
    links = (f'<link rel="modulepreload" href=".{PREFIX}/{version()}/{name}">' for name in modules())
    return "\n".join(links)


def routes() -> list[Route]:
    """Where the files are served; the application that serves the page must have these routes."""
    return [Route(f"{PREFIX}/{version()}/{{name:path}}", _serve)]


async def _serve(request: Request) -> Response:
    name = request.path_params["name"]
    content = files().get(name)
    if content is None:
        return PlainTextResponse(NOT_FOUND, 404, {"cache-control": "no-store"})
    headers = {"cache-control": "public, max-age=31536000, immutable"}
    return Response(content, media_type=MEDIA_TYPES[name.rpartition(".")[2]], headers=headers)
