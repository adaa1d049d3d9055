"""What commands write: lines, files, and a progress bar."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from vit_demo.checks import printable, writing
from vit_demo.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL import Image
    from tqdm import tqdm

    from vit_demo.inference.exploration import Exploration


def print_lines(*lines: str, file: TextIO | None = None, more_to_do: bool = False) -> None:
    """Prints lines, to stdout by default, without disturbing a progress bar.

    If nobody reads the output any more, the program ends, unless there is ``more_to_do`` than to print. If the output
    cannot be written, as on a full disk, it raises ``InputError``.
    """
    from tqdm import tqdm

    stream = file or sys.stdout
    try:
        with tqdm.external_write_mode(stream):
            print(*map(printable, lines), sep="\n", file=stream, flush=True)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())  # for later lines, and the flush when Python ends
        if not isinstance(error, BrokenPipeError):
            raise InputError(f"The output cannot be written ({error.strerror}): send it elsewhere.") from error
        if not more_to_do and stream is sys.stdout:
            sys.exit(0)


def make_folder(path: Path) -> None:
    """Makes a folder, with those above it; ``InputError`` if that is not possible."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"The folder {path} cannot be made ({error.strerror}): choose another one.") from error


def write_picture(path: Path, picture: Image.Image) -> None:
    """Writes a picture as PNG, and makes the folder of the file; ``InputError`` if that is not possible."""
    picture.save(buffer := io.BytesIO(), "PNG")
    make_folder(path.parent)
    with writing(path):
        path.write_bytes(buffer.getvalue())


def prediction_json(result: Exploration) -> dict[str, Any]:
    """The model of a result, and its most likely classes, as JSON values."""
    return {
        "preset": result.preset.name,
        "patch_size": result.patch_size,
        "grid": list(result.grid),
        "predictions": [{"label": label, "probability": probability} for label, probability in result.top()],
    }


def json_values(values: NDArray[np.float32]) -> list[list[float]]:
    """A map ``[rows, cols]`` for JSON, each number with the fewest digits that give the same float32."""
    return [[float(str(value)) for value in row] for row in values]


def progress_bar(maps: int) -> tqdm:
    """A progress bar on stderr, if that is a terminal, over so many maps."""
    from tqdm import tqdm

    disable = True if sys.stderr is None else None  # None: unless stderr is a terminal
    return tqdm(total=maps, disable=disable, leave=False, bar_format="{desc} {percentage:3.0f}% |{bar}| {elapsed}")


def map_progress(bar: tqdm, name: str, position: int) -> Callable[[int, int], None]:
    """Moves a bar to a map of a picture; returns a function that takes the passes done and their total."""

    def move_to(place: float) -> None:
        bar.n = place
        bar.refresh()

    bar.set_description_str(printable(Path(name).name[:40]), refresh=False)
    move_to(position)
    return lambda done, total: move_to(position + done / max(1, total))
