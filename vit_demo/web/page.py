"""The layout of the page: inputs on the left, the result on the right. ``requests.routes`` answers its requests."""

import logging
from html import escape

import gradio as gr

from vit_demo.errors import InputError
from vit_demo.sentences import marked
from vit_demo.service.engine import get_engine
from vit_demo.service.source import Source
from vit_demo.version import __version__
from vit_demo.web import settings
from vit_demo.web.api import ENDPOINTS
from vit_demo.web.api.registration import add_endpoints
from vit_demo.web.catalog.menu import default_photo_preset
from vit_demo.web.frontend.components import inputs, stage
from vit_demo.web.frontend.html_head import TITLE
from vit_demo.web.guard.replacements import SafeBlocks
from vit_demo.web.requests import parse
from vit_demo.web.requests.payload import EmptyPayload, ResultPayload, empty, payload
from vit_demo.weights import DEFAULT_PRESETS, PRESETS, Preset

OPENING_DIGIT, OPENING_PATCH_SIZE = 8, 7  # the first example; without two of its squares it is read as a 3

HEADER = """
<header><button type="button" id="skip">Skip to the picture</button>
<h1 translate="no">vit_demo</h1>
<nav aria-label="Sections"><button type="button" data-section="attention" aria-current="true">Explore</button>
<button type="button" data-section="compare">Compare</button><button type="button" data-section="build">Build</button>
<a href="./lessons">Lessons</a><a href="./api">API</a></nav>
<span class="badge"><span>Runs on</span> <span translate="no">{device}</span></span>
<select id="language" aria-label="Language"></select>
<button type="button" id="theme" aria-label="Switch between light and dark" title="Light or dark"></button></header>
"""
FOOTER = """
<footer><a href="./lessons" target="_blank" rel="noopener">Lessons</a>
<a href="./api" target="_blank" rel="noopener">API</a>{source}
<a href="https://opensource.org/license/mit" target="_blank" rel="noopener">MIT licence</a>
<span translate="no">vit_demo {version}</span></footer>
"""
SOURCE_LINK = '<a href="{}" target="_blank" rel="noopener">Source</a>'


def build_page() -> gr.Blocks:
    """Builds the page, with an example on the stage."""
    preset = PRESETS[DEFAULT_PRESETS["digits"]]
    with SafeBlocks(title=TITLE, analytics_enabled=False) as page:
        add_endpoints(ENDPOINTS)  # first, so that Gradio adds no suffix to their names
        example = initial_stage(preset, parse.example_source(f"digit-{OPENING_DIGIT}"), OPENING_PATCH_SIZE)
        gr.HTML(HEADER.format(device=get_engine().device_name), elem_id="header")
        with gr.Row(elem_id="columns"):
            with gr.Column(elem_id="inputs", min_width=260):
                inputs(digits_preset=preset.name, opening_digit=OPENING_DIGIT, opening_patch_size=OPENING_PATCH_SIZE)
            with gr.Column(elem_id="result", min_width=320):
                stage(example, OPENING_DIGIT)
        gr.HTML(footer(), elem_id="footer")
    return page


def footer() -> str:
    """The last line of the page: lessons, API, source if its address is set, licence, version."""
    source = settings.source_url()
    return FOOTER.format(source=SOURCE_LINK.format(escape(source)) if source else "", version=__version__)


def initial_stage(preset: Preset, source: Source, patch_size: int) -> ResultPayload | EmptyPayload:
    """What the stage shows when the page opens: the result of the example, or why its preset cannot be used."""
    get_engine().warm_up(default_photo_preset())
    request = parse.ResultRequest(source, preset.name, patch_size, "crop")

    def work() -> ResultPayload:
        return payload(get_engine().explore_source(source, preset, patch_size), request)

    try:
        return get_engine().jobs.run(object(), work, preset.task)  # ZeroGPU emulates the main thread's tensors
    except InputError as error:
        logging.getLogger(__name__).error("The preset %s cannot be used: %s", preset.name, error)
        return empty(marked(error.args[0]))
