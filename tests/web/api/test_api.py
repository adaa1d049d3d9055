"""The documented endpoints, called through ``gradio_client``."""

import inspect
import json
from pathlib import Path
from urllib.request import urlopen

import gradio
import numpy as np
import pytest
from gradio_client import Client, handle_file
from PIL import Image

import vit_demo
from vit_demo.version import __version__
from vit_demo.web.api import ENDPOINTS
from vit_demo.web.catalog.example_digits import example_picture

DEFAULT_VIEW = ("attention", -1, -1, -1, -1, "")


@pytest.fixture(scope="module")
def client(page):
    return Client(page.local_url, verbose=False)


def test_health_which_names_no_model_of_a_visitor(page, client, three):
    client.predict(handle_file(three), "digits-small", 4, api_name="/predict")
    with urlopen(f"{page.local_url}healthz") as response:
        health = json.load(response)
    assert set(health) == {"status", "device", "presets", "version"}
    assert health["version"] == __version__ and health["device"] and "digits-small" in health["presets"]


def test_presets(client):
    found = client.predict(api_name="/presets")
    assert [preset["name"] for preset in found] == list(vit_demo.presets())
    assert found[0]["patch_sizes"] == [2, 4, 7, 14] and found[0]["num_parameters"] > 300_000


def test_nothing_of_an_endpoint_is_seen_on_the_page(page):
    names = {function.__name__ for function in ENDPOINTS}
    endpoints = [one for one in page.fns.values() if one.api_name in names]
    assert len(endpoints) == len(names)
    assert not any(block.visible for one in endpoints for block in (*one.inputs, *one.outputs))


def test_methods(client):
    found = client.predict(api_name="/methods")
    assert [method["name"] for method in found] == list(vit_demo.methods())
    listed = vit_demo.methods()["attention"].to_dict()
    assert found[0] == listed | {"options": listed["options"][:3]}, "no option that /explain does not take"


def test_a_photo_of_a_digit_is_read_by_the_digit_model_that_is_named(client, tmp_path):
    """On ruled paper, under uneven light; without the name it is a photo like any other."""
    sheet = Image.new("L", (420, 360), 255)
    sheet.paste(example_picture(4), (70, 40))
    pixels = np.asarray(sheet) * np.linspace(0.5, 0.95, 420)
    pixels[45::60] *= 0.5
    Image.fromarray(pixels.astype(np.uint8)).save(path := tmp_path / "four.jpg")
    named, other = (client.predict(handle_file(path), preset, api_name="/predict") for preset in ("digits-small", ""))
    assert (named["label"], named["preset"], other["preset"]) == ("4", "digits-small", "photos-tiny")


def test_predict(client, three):
    response = client.predict(handle_file(three), "digits-tiny", 7, api_name="/predict")
    expected = vit_demo.explore(three, "digits-tiny", patch_size=7)
    assert response["label"] == "3" and response["grid"] == [4, 4]
    assert [c["label"] for c in response["confidences"]] == [label for label, _ in expected.top(5)]
    assert response["confidences"][0]["confidence"] == pytest.approx(expected.top(1)[0][1], abs=1e-4)


def test_without_a_preset_the_picture_decides(client, three):
    lion = handle_file(Path(gradio.__file__).parent / "media_assets" / "images" / "lion.jpg")
    for api_name in ("/predict", "/explain_image"):
        found = [client.predict(picture, api_name=api_name) for picture in (handle_file(three), lion)]
        digit, photo = (one[0] if isinstance(one, tuple) else one for one in found)
        assert (digit["preset"], digit["label"], digit["labels"]) == ("digits-small", "3", list("0123456789"))
        assert (photo["preset"], photo["label"], photo["is_confident"]) == ("photos-tiny", "lion", True)
        assert photo["labels"] == list(vit_demo.presets()["photos-tiny"].labels), "what it takes anything for"
    assert client.predict(lion, api_name="/explain")["preset"] == "photos-tiny"
    assert (
        vit_demo.explore(three).preset.name == "digits-small" and vit_demo.explore(lion["path"]).top(1)[0][0] == "lion"
    )
    presets = [inspect.signature(function).parameters.get("preset") for function in ENDPOINTS]
    assert {one.default for one in presets if one} == {"", inspect.Parameter.empty}, "one default everywhere"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (DEFAULT_VIEW, lambda ex: ex.attention()),
        (("attention", 2, 1, 3, 4, ""), lambda ex: ex.attention(2, 1, (3, 4))),
        (("attention", 0, -1, 0, 0, "5"), lambda ex: ex.attention(0, None, (0, 0))),
        (("rollout", -1, -1, -1, -1, ""), lambda ex: ex.rollout()),
        (("rollout", -1, -1, 2, 6, ""), lambda ex: ex.rollout((2, 6))),
        (("relevance", -1, -1, -1, -1, ""), lambda ex: ex.relevance()),
        (("relevance", -1, -1, -1, -1, "5"), lambda ex: ex.relevance("5")),
        (("attnlrp", -1, -1, -1, -1, "5"), lambda ex: ex.heatmap("attnlrp", 5)),
    ],
)
def test_explain(client, three, arguments, expected):
    response = client.predict(handle_file(three), "digits-tiny", 4, *arguments, api_name="/explain")
    wanted = expected(vit_demo.explore(three, "digits-tiny", patch_size=4))
    np.testing.assert_allclose(response["map"], wanted, atol=1e-6)
    assert (response["rows"], response["cols"], response["method"]) == (7, 7, arguments[0])
    assert response["class_specific"] is (arguments[0] in ("relevance", "attnlrp"))
    assert response["label"] == (arguments[-1] or "3")


def test_overlay(client, three):
    path = client.predict(handle_file(three), "digits-tiny", 4, "rollout", -1, -1, -1, -1, "", api_name="/overlay")
    expected = vit_demo.explore(three, "digits-tiny", patch_size=4)
    assert np.array_equal(np.asarray(Image.open(path)), np.asarray(expected.overlay(expected.rollout())))


@pytest.mark.parametrize(
    ("preset", "patch_size", "arguments", "message"),
    [
        ("vit-9000", 4, DEFAULT_VIEW, "no preset"),
        ("digits-tiny", 5, DEFAULT_VIEW, "choose one of 2, 4, 7, 14"),
        ("digits-tiny", 4, ("magic", -1, -1, -1, -1, ""), "no method"),
        ("digits-tiny", 4, ("attention", 6, -1, -1, -1, ""), "no block 6"),
        ("digits-tiny", 4, ("attention", -1, -1, 7, 0, ""), "no patch"),
        ("digits-tiny", 4, ("attention", -1, -1, -1, -1, "ten"), "no class 'ten'"),
    ],
)
def test_invalid_arguments_get_a_message_and_the_next_call_works(client, three, preset, patch_size, arguments, message):
    with pytest.raises(Exception, match=message):
        client.predict(handle_file(three), preset, patch_size, *arguments, api_name="/explain")
    assert client.predict(handle_file(three), "digits-tiny", 4, api_name="/predict")["label"] == "3"
