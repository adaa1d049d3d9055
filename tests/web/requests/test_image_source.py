"""Pictures of API calls, and words."""

import base64
import io

import numpy as np
from PIL import Image

from vit_demo.web.requests.parse import ResultRequest, image_source


def test_the_lines_of_a_data_url_may_be_wrapped():
    """As MIME and many command lines wrap Base64, at 76 characters."""
    pixels = np.random.default_rng(0).integers(0, 256, (20, 30, 3), np.uint8)
    Image.fromarray(pixels).save(file := io.BytesIO(), "PNG")
    url = "data:image/png;base64," + base64.encodebytes(file.getvalue()).decode()
    assert url.count("\n") > 10
    np.testing.assert_array_equal(np.asarray(image_source(url).read()), pixels)


def test_words_come_as_a_list_or_as_a_text():
    about = {"example": "cat", "preset": "tinyclip-8m", "patch_size": 16, "fit": "crop", "dropped": [3, 1, 3]}
    listed, written = (ResultRequest.parse({**about, "words": sent}) for sent in (["a cat", "a dog"], "a cat, a dog"))
    assert listed.words == written.words == ("a cat", "a dog") and listed.dropped == (1, 3)
    assert listed.key == written.key != ResultRequest.parse(about).key
