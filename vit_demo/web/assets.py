"""Reads the HTML, CSS and JSON files of the page."""

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
