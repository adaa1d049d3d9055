"""The documented endpoints, through ``gradio_client``, as a stranger would call them."""

import json
from urllib.request import urlopen

import numpy as np
import pytest
from gradio_client import Client, handle_file
from PIL import Image

import vit_demo
from vit_demo.inference.engine import DEFAULT_PRESET
from vit_demo.version import __version__
from vit_demo.web import launch
from vit_demo.web.components.pad import example_picture

EVERYTHING = ("attention", -1, -1, -1, -1, "")


@pytest.fixture(scope="module")
def served():
    page = launch("127.0.0.1", wait=False)
    yield page
    page.close()


@pytest.fixture(scope="module")
def client(served):
    return Client(served.local_url, verbose=False)


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    path = tmp_path_factory.mktemp("digits") / "three.png"
    example_picture(3).save(path)
    return path


def test_health(served):
    with urlopen(f"{served.local_url}healthz") as answer:
        assert answer.status == 200
        said = json.load(answer)
    assert said["version"] == __version__ and said["device"] and DEFAULT_PRESET in said["presets"]


def test_only_the_documented_endpoints_are_public(client):
    assert set(client.view_api(return_format="dict")["named_endpoints"]) == {
        "/presets",
        "/predict",
        "/explain",
        "/overlay",
    }


def test_presets(client):
    found = client.predict(api_name="/presets")
    assert [preset["name"] for preset in found] == list(vit_demo.presets())
    assert found[0]["patch_sizes"] == [2, 4, 7, 14] and found[0]["num_parameters"] > 300_000


def test_predict(client, three):
    answer = client.predict(handle_file(three), "digits-tiny", 7, api_name="/predict")
    expected = vit_demo.explore(three, "digits-tiny", 7)
    assert answer["label"] == "3" and answer["grid"] == [4, 4]
    assert [c["label"] for c in answer["confidences"]] == [label for label, _ in expected.top(5)]
    assert answer["confidences"][0]["confidence"] == pytest.approx(expected.top(1)[0][1], abs=1e-4)


def test_predict_a_photo_in_colour(client, tmp_path):
    Image.effect_noise((200, 120), 80).convert("RGB").save(tmp_path / "noise.jpg")
    answer = client.predict(handle_file(tmp_path / "noise.jpg"), "photos-tiny", 20, api_name="/predict")
    assert answer["label"] in vit_demo.presets()["photos-tiny"].labels and answer["grid"] == [6, 6]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (EVERYTHING, lambda ex: ex.attention()),
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
    answer = client.predict(handle_file(three), "digits-tiny", 4, *arguments, api_name="/explain")
    wanted = expected(vit_demo.explore(three, "digits-tiny", 4))
    np.testing.assert_allclose(answer["map"], wanted, atol=1e-6)
    assert (answer["rows"], answer["cols"], answer["method"]) == (7, 7, arguments[0])
    assert answer["class_specific"] is (arguments[0] in ("relevance", "attnlrp"))
    assert answer["label"] == (arguments[-1] or "3")


def test_overlay(client, three):
    path = client.predict(handle_file(three), "digits-tiny", 4, "rollout", -1, -1, -1, -1, "", api_name="/overlay")
    expected = vit_demo.explore(three, "digits-tiny", 4)
    assert np.array_equal(np.asarray(Image.open(path)), np.asarray(expected.overlay(expected.rollout())))


@pytest.mark.parametrize(
    ("preset", "patch_size", "arguments", "words"),
    [
        ("vit-9000", 4, EVERYTHING, "no preset"),
        ("digits-tiny", 5, EVERYTHING, "choose one of 2, 4, 7, 14"),
        ("digits-tiny", 4, ("magic", -1, -1, -1, -1, ""), "no method"),
        ("digits-tiny", 4, ("attention", 6, -1, -1, -1, ""), "no block 6"),
        ("digits-tiny", 4, ("attention", -1, -1, 7, 0, ""), "no patch"),
        ("digits-tiny", 4, ("attention", -1, -1, -1, -1, "ten"), "no class 'ten'"),
        ("digits-tiny", 4, ("relevance", -1, -1, -1, -1, "ten"), "no class 'ten'"),
    ],
)
def test_bad_arguments_come_back_as_one_sentence_and_the_next_call_works(
    client, three, preset, patch_size, arguments, words
):
    with pytest.raises(Exception, match=words):
        client.predict(handle_file(three), preset, patch_size, *arguments, api_name="/explain")
    assert client.predict(handle_file(three), "digits-tiny", 4, api_name="/predict")["label"] == "3"


def test_a_file_that_is_no_picture_is_refused_in_words(client, tmp_path):
    (tmp_path / "notes.jpg").write_text("not a picture")
    with pytest.raises(Exception, match="picture"):
        client.predict(handle_file(tmp_path / "notes.jpg"), "digits-tiny", 4, api_name="/predict")
