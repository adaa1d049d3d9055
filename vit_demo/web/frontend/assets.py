"""Reads the HTML, CSS and JSON files of the page."""

import re
from pathlib import Path

HERE = Path(__file__).parent

_CSS_COMMENT = re.compile(r"^[ \t]*/\*(?:.|\n)*?\*/\n", re.MULTILINE)
_INDENTATION = re.compile(r"^[ \t]+", re.MULTILINE)


def read(name: str) -> str:
    """Returns the text of one file of this folder.

    Args:
        name: Path relative to this folder, such as `"pad/pad.css"`.

    Returns:
        The file's text.
    """
    return (HERE / name).read_text(encoding="utf-8")


def read_styles(*names: str) -> str:
    """Returns style sheets of this folder as one, without indentation and comments on lines of their own.

    Args:
        *names: Paths as in `read`.

    Returns:
        The text, shorter to send.
    """
    return _INDENTATION.sub("", _CSS_COMMENT.sub("", "\n".join(map(read, names))))
