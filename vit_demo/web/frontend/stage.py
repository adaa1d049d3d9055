"""The stage: the picture under its heatmap, the prediction, and every view of it, in `gr.HTML`.

The page gets a result once and draws from it; it requests only the traces of blocks and the maps that need the model.
`stage/main.js` starts it, `stage/methods.js` describes how each method is shown, and each folder of `stage/views/` is
one card below or beside the picture.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vit_demo.methods import METHODS
from vit_demo.web.catalog.example_photos import EXAMPLE_PHOTOS
from vit_demo.web.catalog.networks import starting_points
from vit_demo.web.frontend.assets import read, read_styles
from vit_demo.web.frontend.constants import constants
from vit_demo.web.frontend.modules import load_script
from vit_demo.web.frontend.request_html import OnRequest, RequestHTML
from vit_demo.web.requests.tour import step_code

FOLDER = Path(__file__).parent / "stage"


class Stage(RequestHTML):
    """Shows one result of a Vision Transformer.

    The value is a `ResultPayload`, an `EmptyPayload` or None.
    """

    def __init__(
        self,
        value: Mapping[str, Any] | None = None,
        *,
        on_request: OnRequest,
        **kwargs: Any,
    ) -> None:
        """Makes a stage.

        Args:
            value: What it shows when the page opens.
            on_request: Handles a request about a result; the page repeats the request until the reply holds its result
                or an error. See ``web/requests/poll.py``.
            **kwargs: What `gr.HTML` takes besides its templates, such as `elem_id`.
        """
        super().__init__(
            value=value,
            html_template=read("stage/stage.html"),
            css_template=stylesheet(),
            js_on_load=load_script(
                "stage",
                constants=constants(),
                registered=method_entries(),
                viewNames=view_names(),
                stepCode=step_code(),
                startingPoints=starting_points(),
                examples=[{"name": photo.name, "title": photo.title} for photo in EXAMPLE_PHOTOS.values()],
            ),
            on_request=on_request,
            **kwargs,
        )

    def api_info(self) -> dict[str, Any]:
        """Describes the value for callers of the API."""
        return {"type": "object", "description": "Everything the page shows of one result"}


def view_names() -> list[str]:
    """The views: folders of `stage/views/` with a module `view.js`, and a style sheet `view.css` where it needs one."""
    return sorted(path.parent.name for path in (FOLDER / "views").glob("*/view.js"))


def stylesheet() -> str:
    """The colours of the page, the style of the stage, then that of each view."""
    views = sorted(path.relative_to(FOLDER).as_posix() for path in (FOLDER / "views").glob("*/view.css"))
    names = ["stage.css", "controls.css", *views]
    return read_styles("shared/palette.css", "shared/widgets.css", *(f"stage/{name}" for name in names))


def method_entries() -> list[dict[str, Any]]:
    """The registered explanation methods, as `describeMethods` in `stage/methods.js` takes them."""
    return [
        {**method.to_dict(), "many_passes": method.is_slow, "compares_classes": method.compares_classes}
        for method in METHODS.values()
    ]
