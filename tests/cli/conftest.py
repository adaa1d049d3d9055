from pathlib import Path

import gradio
import numpy as np
import pytest
from PIL import Image


@pytest.fixture
def seven(tmp_path):
    """A plain 7 in ink on paper."""
    picture = np.full((100, 100), 255, np.uint8)
    picture[20:28, 25:70] = 0
    for row in range(20, 85):
        picture[row, int(66 - 0.5 * (row - 20)) : int(75 - 0.5 * (row - 20))] = 0
    path = tmp_path / "seven.png"
    Image.fromarray(picture).save(path)
    return path


@pytest.fixture
def photo():
    """A photo of a lion."""
    return Path(gradio.__file__).parent / "media_assets" / "images" / "lion.jpg"


@pytest.fixture
def pictures(seven, tmp_path):
    """A folder with two sevens, a file that is no picture but has the suffix of one, and one that has not."""
    folder = tmp_path / "pictures"
    (folder / "more").mkdir(parents=True)
    for name in ("a.png", "c.PNG", "more/a.png"):
        (folder / name).write_bytes(seven.read_bytes())
    (folder / "b.jpg").write_bytes(b"no picture")
    (folder / "notes.txt").write_text("no picture")
    return folder
