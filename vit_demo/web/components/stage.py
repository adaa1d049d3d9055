"""The stage: the picture under its heatmap, the answers, the explanation and every block and head, in `gr.HTML`.

The page gets the numbers of a result once and draws everything from them, so that no choice on the stage costs a
request; only the trace of another block of a fine grid is fetched, in the background. The scripts in `stage/` hold
one idea each; `stage/methods.js` is the table of ways to look at a result.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import gradio as gr

from vit_demo.web.assets import read, script

SCRIPTS = [
    "decode",
    "result",
    "words",
    "methods",
    "colours",
    "paint",
    "dom",
    "controls",
    "pointing",
    "answers",
    "strip",
    "traces",
    "asking",
    "maps",
    "making",
    "knockout",
    "charts",
    "verdicts",
    "believe",
    "depths",
    "main",
]
"""In the order they need each other."""

STYLES = ["stage", "controls", "believe", "depths"]


class Stage(gr.HTML):
    """Shows what a Vision Transformer made of one image.

    The value is a dictionary of JSON values: a result, `{"empty": True, "message": "..."}`, or None. A result holds

    - `run` (new for every result), `source` (what a request about it repeats), `title`, `note`, `milliseconds`,
      `device`;
    - `image` (data URL of what the model saw), `size` (its width and height), `pixelated` (draw it unsmoothed);
    - `photo`: None for a drawing, else `{"image", "box", "fit"}`: the whole photo, the part that was seen as shares of
      its sides (left, top, right, bottom), and how that was fitted;
    - `grid` (rows, columns), `prefix` (tokens before the patches), `class_token`, `blocks`, `heads`;
    - `dropped`: the patches that were knocked out, counted row by row; no token in `trace` stands for them;
    - `top`: list of `{"index", "label", "probability"}`, empty for a model without classes;
    - `summary`: the class token's rows, `{"map": uint8 [L, H, N], "peak": float32 [L, H]}`; value = map / 255 * peak;
    - `rollout`: `{"map": uint8 [N], "peak": float}`;
    - `trace`: for some or all blocks, `{"q": float16 [H, T, d], "k": float16 [H, T, d], "lse": float32 [H, T]}`, where
      exp(q . k - lse) is the attention.

    Arrays are base64 of little-endian bytes.
    """

    def __init__(
        self,
        value: dict[str, Any] | None = None,
        *,
        ask: Callable[[Any], Awaitable[dict[str, Any]]],
        **kwargs: Any,
    ) -> None:
        """Makes a stage.

        Args:
            value: What it shows when the page opens.
            ask: Takes a request about a result, and is asked again until it returns an answer; see
                ``map_requests.ask``.
            **kwargs: What `gr.HTML` takes besides its templates, such as `elem_id`.
        """
        super().__init__(
            value=value,
            html_template=read("components/stage/stage.html"),
            css_template="\n".join(read(f"components/stage/{name}.css") for name in STYLES),
            js_on_load=script("components/stage", SCRIPTS),
            server_functions=[_server_function(ask)],
            apply_default_css=False,
            **kwargs,
        )

    def get_config(self) -> dict[str, Any]:  # type: ignore[override]
        """Returns what the browser needs; Gradio would add its functions, which no browser can read."""
        config = super().get_config()
        for name in config["server_fns"]:
            config.pop(name, None)
        return config

    def api_info(self) -> dict[str, Any]:
        """Describes the value for callers of the API."""
        return {"type": "object", "description": "Everything the page shows of one result"}


def _server_function(ask: Callable[[Any], Awaitable[dict[str, Any]]]) -> Callable[[Any], Awaitable[dict[str, Any]]]:
    """A function of its own for each stage, as Gradio marks the one that it is given."""

    async def server_ask(request: Any) -> dict[str, Any]:
        return await ask(request)

    server_ask.__name__ = "ask"
    return server_ask
