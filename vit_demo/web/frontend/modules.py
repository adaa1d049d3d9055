"""Serves the page's JavaScript as one file, what is fetched later, and the languages, at addresses with their hash.

Gradio runs a component's `js_on_load` as the body of a function, which here imports that file and calls the `mount`
of `COMPONENT/main.js`. An address always has the same content, so browsers may keep it, and releases never mix.
"""

import hashlib
import json
from functools import cache, partial
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from vit_demo.web.frontend.assets import bundle, sources
from vit_demo.web.guard.compression import FOREVER

LANGUAGES = Path(__file__).parents[1] / "languages"
MEDIA_TYPES = {"js": "text/javascript", "json": "application/json"}

PREFIX = "/gradio_api/vit_demo"  # Gradio's own prefix: with server-side rendering, no other path reaches Python

SCRIPT = "page.js"
STARTS = ("header/main.js", "inputs/main.js", "stage/main.js")
"""The modules that start the page."""
LATER = {
    "ask.js": "stage/views/ask/naming.js",
    "build.js": "stage/views/build/building.js",
    "compare.js": "stage/views/compare/comparing.js",
    "film.js": "stage/film/main.js",
    "heads.js": "stage/views/blocks/heads.js",
    "lesson.js": "stage/lesson.js",
    "methods.js": "stage/views/faithfulness/methodTable.js",
    "sum.js": "stage/views/steps/contributions.js",
    "tables.js": "stage/views/download/tables.js",
    "teach.js": "stage/views/teach/teaching.js",
}
"""Modules, by the file that they are served in with all that they need, that a first visit does not wait for."""

LOAD = """\
const constants = CONSTANTS;
const root = new URL(window.gradio_config?.root || ".", document.baseURI);
const origin = root.hostname === location.hostname ? location.origin : root.origin; // as Gradio does behind a proxy
const base = origin + root.pathname.replace(/\\/$/, "") + "PREFIX";
const url = `${base}/PATH`;
const start = ({ modules }) => {
  const load = async (name) => (await import(url.replace(/[^/]*$/, name))).add(modules);
  const server = { ...modules["shared/requests.js"].connect(base), load };
  modules["COMPONENT/main.js"].mount({ element, props, watch, server, ...constants });
};
import(url).then(start, (error) => {
  console.error(error);
  element.textContent = `This part of the page could not be loaded from ${new URL(url).host}: reload the page.`;
});
"""


@cache
def files() -> dict[str, bytes]:
    """The files that are served: the modules of the page, those for later, and languages as `"languages/es.json"`."""
    languages = sorted(LANGUAGES.glob("*.json"))
    scripts = {SCRIPT: ""} | LATER
    bundles = {name: bundle(sources(), STARTS, start).encode() for name, start in scripts.items()}
    return bundles | {f"languages/{path.name}": path.read_bytes() for path in languages}


@cache
def version() -> str:
    """A hash of the paths and contents of all files."""
    digest = hashlib.sha256()
    for name, content in files().items():
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:16]


def load_script(component: str, **constants: Any) -> str:
    """The `js_on_load` of a component, by its folder, such as `"stage"`.

    The constants are JSON values for `mount`, and no properties of the component, because the browser forgets those
    after an update from Python.
    """
    load = LOAD.replace("PREFIX", PREFIX).replace("PATH", f"{version()}/{SCRIPT}").replace("COMPONENT", component)
    return load.replace("CONSTANTS", json.dumps(constants))


def script_tag() -> str:
    """HTML for the page's head, by which the browser fetches the modules while Gradio is still starting."""
    return f'<script type="module" src=".{PREFIX}/{version()}/{SCRIPT}"></script>'


def routes() -> list[Route]:
    """The routes of the files."""
    return [Route(f"{PREFIX}/{version()}/{name}", partial(_send, name)) for name in files()]


async def _send(name: str, _: Request) -> Response:
    kind = MEDIA_TYPES[name.rpartition(".")[2]]
    return Response(files()[name], media_type=kind, headers={"cache-control": FOREVER})
