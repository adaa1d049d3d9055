"""The theme of the page, and its head: title, description, picture for link previews, icon, script.

Link previews read the page without running its scripts, so the head replaces Gradio's own lines in its template.
"""

import re
from collections.abc import Callable
from functools import partial

import gradio as gr
from gradio import routes as gradio_routes
from jinja2 import BaseLoader, Environment
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from vit_demo.web.frontend import modules
from vit_demo.web.frontend.assets import FOLDER
from vit_demo.web.frontend.constants import COLOURS

TITLE = "vit_demo: see how a Vision Transformer works"
DESCRIPTION = (
    "Draw a digit or choose a photo, and see how a Vision Transformer cuts it into patches, what each attends to, "
    "which of them are evidence for the prediction, and whether a heatmap is faithful."
)

TEMPLATE = "frontend/index.html"

FILES = {"icon.svg": "image/svg+xml", "preview.jpg": "image/jpeg"}  # files of the head, and their types

API_INFO, NO_API_INFO = "{{ gradio_api_info | toorjson }}", '{"named_endpoints": {}, "unnamed_endpoints": {}}'
"""The description of the API, 85 kB, which only Gradio's own page of the API reads; ours is at ``/api``."""

_GRADIOS_OWN = re.compile(r"""<meta\s+(?:property="og:|name="twitter:)[^>]*?/>\s*""")

_HEAD = """
<script data-root="{root}/">
{{ // A proxy may answer below a path without its last slash, where nothing of the page would be found.
  const root = new URL(document.currentScript.dataset.root).pathname;
  if (location.pathname + "/" === root) location.replace(root + location.search + location.hash);
}}
{{ // Before Gradio keeps it: its loader, gone once the page is there, asks for every frame until it is refused one.
  const next = requestAnimationFrame;
  window.requestAnimationFrame = (callback) => (window.refusesFrame?.() ? 0 : next(callback));
}}
</script>
<title>{title}</title>
<meta name="description" content="{description}" />
<meta property="og:type" content="website" />
<meta property="og:site_name" content="vit_demo" />
<meta property="og:title" content="{title}" />
<meta property="og:description" content="{description}" />
<meta property="og:url" content="{root}/" />
<meta property="og:image" content="{root}{prefix}/preview.jpg" />
<meta property="og:image:width" content="1200" />
<meta property="og:image:height" content="630" />
<meta property="og:image:alt" content="A drawn 8 under a heatmap, and the prediction beside it" />
<meta name="twitter:card" content="summary_large_image" />
<link rel="icon" type="image/svg+xml" href=".{prefix}/icon.svg" />
<style>
/* From the start, so that nothing moves when Gradio adds page.css; for a wide screen, and for the bar of a phone. */
.gradio-container {{ max-width: none !important; padding: 0 !important; }}
.gradio-container .main.app {{ max-width: 1680px !important; padding-inline: clamp(16px, 2.2vw, 32px) !important; }}
@media (min-width: 1800px) and (min-height: 1000px) {{
  .gradio-container .main.app {{ max-width: 1920px !important; }}
}}
@media (max-width: 600px) {{ .gradio-container .main.app {{ padding-bottom: 88px !important; }} }}
@media print {{ .gradio-container .main.app {{ padding: 0 !important; }} }}
#columns {{ min-height: 100svh; }} /* the last line of the page waits for what is still being loaded */
#footer:not(#columns ~ *) {{ visibility: hidden; }}
</style>
{script}
"""

FONTS = ["Inter", "system-ui", "-apple-system", "Segoe UI", "sans-serif"]  # the visitor's own: none is loaded


def with_head(source: str) -> str:
    """Gradio's template, which fills in the page's address, with this head in place of its own lines for previews."""
    head = _HEAD.format(
        title=TITLE,
        description=DESCRIPTION,
        root="{{ config.get('root', '') }}",
        prefix=modules.PREFIX,
        script=modules.script_tag(),
    )
    source = _GRADIOS_OWN.sub("", source).replace(API_INFO, NO_API_INFO)
    return source.replace("<style>", f"{head}<style>", 1)


class PageTemplates(BaseLoader):
    """Gradio's templates, with the head of this page."""

    def __init__(self, original: BaseLoader) -> None:
        self._original = original

    def get_source(self, environment: Environment, template: str) -> tuple[str, str | None, Callable[[], bool] | None]:
        """The source of a template."""
        source, path, is_current = self._original.get_source(environment, template)
        return with_head(source) if template == TEMPLATE else source, path, is_current


def install() -> None:
    """Installs the head for all pages of this process."""
    environment = gradio_routes.templates.env
    if not isinstance(environment.loader, PageTemplates):
        assert environment.loader is not None
        environment.loader = PageTemplates(environment.loader)


def routes() -> list[Route]:
    """The routes of the icon and of the picture for previews."""
    return [Route(f"{modules.PREFIX}/{name}", partial(_send, name)) for name in FILES]


def _send(name: str, _: Request) -> Response:
    headers = {"cache-control": "public, max-age=86400"}
    return FileResponse(FOLDER / name, media_type=FILES[name], headers=headers)


def theme() -> gr.themes.Base:
    """Light and dark theme; Gradio's components and the custom ones use the same variables."""
    return gr.themes.Base(
        primary_hue=gr.themes.colors.indigo,
        neutral_hue=gr.themes.colors.zinc,
        radius_size=gr.themes.sizes.radius_lg,
        font=FONTS,
        font_mono=["ui-monospace", "Menlo", "Consolas", "monospace"],
    ).set(
        block_radius="14px",
        **{name: light for name, (light, _) in COLOURS.items()},
        **{f"{name}_dark": dark for name, (light, dark) in COLOURS.items() if dark != light},
    )
