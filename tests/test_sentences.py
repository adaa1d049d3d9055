"""Sentences with values: as they are read, and as the page gets them."""

import io
import pickle

import pytest
from PIL import Image

from vit_demo.errors import ImageError, MissingPackageError
from vit_demo.images.decoder import MAX_PIXELS
from vit_demo.images.reading import decode_in_process
from vit_demo.sentences import joined, marked, sentence

LARGE = "{0} of {1} is larger than {2} MB."


def test_values_are_marked_for_the_page_alone():
    text = sentence(LARGE, "a.json", "{1}", 3)
    assert text == "a.json of {1} is larger than 3 MB." and str(text) == text
    assert marked(text) == "\u2068a.json\u2069 of \u2068{1}\u2069 is larger than \u20683\u2069 MB."
    assert marked("Plain {0}.") == "Plain {0}."


def test_sentences_are_joined_with_their_marks():
    text = joined(sentence("{0} blocks.", 6), "", "Plain {0}.")
    assert text == "6 blocks. Plain {0}." and marked(text) == "\u20686\u2069 blocks. Plain {0}."


@pytest.mark.parametrize("kind", [ImageError, MissingPackageError])
def test_an_error_keeps_its_marks_in_another_process(kind: type[Exception]):
    error = pickle.loads(pickle.dumps(kind(LARGE, "a", "b", 1.5)))
    assert str(error) == "a of b is larger than 1.5 MB." and marked(error.args[0]).count("\u2068") == 3
    assert str(kind("Not {0}.")) == "Not {0}."


def test_the_error_of_the_decoding_process_keeps_its_marks():
    picture = io.BytesIO()
    Image.new("1", (65_000, 1600)).save(picture, "PNG")
    with pytest.raises(ImageError) as caught:
        decode_in_process(picture.getvalue())
    message = caught.value.args[0]
    assert f"\u2068{MAX_PIXELS // 10**6}\u2069 million pixels" in marked(message) and "100 million" in message
