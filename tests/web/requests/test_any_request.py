"""Whatever is sent, the reply is a result, progress, or one sentence; never a bug's traceback. By hypothesis."""

import inspect
import os
from collections.abc import Callable
from typing import Any

import gradio as gr
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vit_demo.errors import ImageError, InputError
from vit_demo.images import decode_image
from vit_demo.images.decoder import decode
from vit_demo.methods import METHODS
from vit_demo.web.api import ENDPOINTS
from vit_demo.web.catalog.example_digits import example_picture
from vit_demo.web.requests.kinds import KINDS
from vit_demo.web.requests.packing import INTERNAL_ERROR
from vit_demo.web.requests.payload import data_url
from vit_demo.weights import costs

from ...asynchronous import run
from ...replies import handle

EXAMPLES = int(os.environ.get("VIT_DEMO_EXAMPLES", "40"))  # of each test

QUICK = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize="VIT_DEMO_EXAMPLES" not in os.environ,
    suppress_health_check=list(HealthCheck),
    database=None,
)

DRAWING = data_url(example_picture(3))
MANY_PASSES = {name for name, kind in KINDS.items() if getattr(kind, "cost", None) is costs.many_passes}
SLOW = [name for name, method in METHODS.items() if method.is_slow]

texts = st.text(max_size=30) | st.sampled_from(["", "\0", "../../etc/passwd", "NaN", "digits-tiny", "1e9", "a" * 300])
scalars = st.none() | st.booleans() | st.integers() | st.floats() | texts
anything = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=6
)


def mostly(valid: st.SearchStrategy[Any], times: int = 3) -> st.SearchStrategy[Any]:
    """A valid value this many times as often as anything, so that the later checks are reached, too."""
    return st.one_of(*times * [valid], anything)


pictures = st.one_of(
    st.fixed_dictionaries({"drawing": mostly(st.just(DRAWING))}),
    st.fixed_dictionaries({"example": mostly(st.just("digit-7"))}),
    st.fixed_dictionaries({"digit": anything}),
    st.fixed_dictionaries({"upload": anything}),
    st.dictionaries(st.sampled_from(["drawing", "digit", "example", "upload"]), anything, max_size=4),
)
choices = st.fixed_dictionaries(
    {
        "preset": mostly(st.just("digits-tiny")),
        "patch_size": mostly(st.sampled_from([7, 14, 14.0, "14"])),
        "fit": mostly(st.sampled_from(["crop", "keep"])),
        "dropped": mostly(st.lists(st.integers(-1, 20), max_size=4)),
    }
)
sources = mostly(st.tuples(pictures, choices).map(lambda parts: {**parts[0], **parts[1]}))
requests = st.fixed_dictionaries(
    {
        "kind": mostly(st.sampled_from([name for name in KINDS if name not in MANY_PASSES])),
        "source": sources,
        "method": mostly(st.sampled_from([name for name in METHODS if name not in SLOW])),
    },
    optional={
        name: mostly(st.integers(-2, 20))
        for name in ("block", "head", "query", "label", "against", "patch", "order", "filter")
    }
    | {"direction": mostly(st.sampled_from(["from", "to"])), "other": sources},
)


def is_a_sentence(text: str) -> bool:
    """Whether a message is what a person can read, and no bug's."""
    return 10 < len(text) < 600 and "\n" not in text and "Traceback" not in text and text.endswith((".", "!", "?"))


@QUICK
@given(requests | anything)
def test_any_request_of_the_page(request: Any) -> None:
    reply = handle(request)
    assert len({"result", "error", "done"} & set(reply)) == 1
    if "error" in reply:
        assert reply["error"] != INTERNAL_ERROR and is_a_sentence(reply["error"])


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "image": st.just(DRAWING),
    "other": st.just(DRAWING) | st.none(),
    "preset": st.just("digits-tiny"),
    "patch_size": st.sampled_from([0, 7, 14, None, ""]),
    "method": st.sampled_from([name for name in METHODS if name not in SLOW]),
    "label": st.sampled_from(["", "3"]),
    "patches": st.lists(st.lists(st.integers(-1, 4), min_size=2, max_size=2), max_size=3),
    "baseline": st.just("grey"),
}
"""Valid values of parameters by their names; the others are small numbers."""

TAKING_ARGUMENTS = [endpoint for endpoint in ENDPOINTS if inspect.signature(endpoint).parameters]


@pytest.mark.parametrize("endpoint", TAKING_ARGUMENTS, ids=lambda endpoint: endpoint.__name__)
def test_any_arguments_of_an_endpoint(endpoint: Callable[..., Any]) -> None:
    values = [mostly(VALUES.get(name, st.integers(-2, 9)), 9) for name in inspect.signature(endpoint).parameters]

    @QUICK
    @given(st.tuples(*values))
    def call(arguments: tuple[Any, ...]) -> None:
        try:
            assert run(endpoint(*arguments)) is not None
        except gr.Error as error:
            assert str(error.message) != INTERNAL_ERROR and is_a_sentence(str(error.message))

    call()


starts = st.sampled_from(
    [
        *(b"", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xe0", b"GIF89a", b"RIFF\x10\0\0\0WEBPVP8 ", b"II*\0\x08\0\0\0"),
        *(b"BM", b"P6 ", b"\0\0\0\x1cftypavif", b"\0\0\0\x18ftypheic", b"8BPS\0\x01", b"%!PS-Adobe", b"qoif"),
    ]
)


@QUICK
@given(starts, st.binary(max_size=300))
def test_any_bytes_for_the_decoder(start: bytes, rest: bytes) -> None:
    """In this process, where nothing hides an exception that is not an ``ImageError``."""
    try:
        assert decode(start + rest).mode == "RGB"
    except ImageError as error:
        assert is_a_sentence(str(error))


@pytest.mark.parametrize("value", [None, 3, [], {}, "text", float("nan"), b"", object()])
def test_anything_but_bytes_is_no_picture(value: Any) -> None:
    with pytest.raises(InputError) as caught:
        decode_image(value)
    assert is_a_sentence(str(caught.value))
