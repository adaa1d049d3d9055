"""Reads the HTML, CSS and JavaScript that the custom components keep beside their Python."""

from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parent


def read(name: str) -> str:
    """Returns the text of one file of this package.

    Args:
        name: Path relative to `vit_demo/web`, such as `"pad/pad.css"`.

    Returns:
        The file's text.
    """
    return (HERE / name).read_text(encoding="utf-8")


def script(folder: str, names: Sequence[str]) -> str:
    """Joins JavaScript files into one script, in the order given.

    Gradio runs the result as the body of one function, so the files share a scope of their own and leave nothing
    behind on `window`.

    Args:
        folder: Folder of the component, such as `"stage"`.
        names: File names without `.js`; a file may use at load what stands before it.

    Returns:
        The script, in strict mode.
    """
    return "\n".join(['"use strict";', *(read(f"{folder}/{name}.js") for name in names)])
