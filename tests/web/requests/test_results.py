"""Requests of the page about a result, compared with the result itself."""

import base64

import huggingface_hub
import numpy as np
import pytest
from PIL import Image

import vit_demo
from vit_demo.methods import METHODS
from vit_demo.service.engine import _engines, get_engine
from vit_demo.web.catalog.example_digits import example_picture
from vit_demo.web.catalog.example_photos import EXAMPLE_PHOTOS
from vit_demo.web.catalog.menu import model_entry
from vit_demo.web.requests import kinds, maps, parse, poll
from vit_demo.web.requests.parse import ResultRequest, upload_source
from vit_demo.web.requests.payload import block_payload, data_url, payload
from vit_demo.weights import PRESETS

from ...replies import complete, forget, send


def map_values(source, **view):
    sent = base64.b64decode(send(source, "map", **view)["map"])
    return np.frombuffer(sent, "<f4").reshape(4, 4)


def shares(sent):
    """The probabilities of all classes, highest first."""
    return np.frombuffer(base64.b64decode(sent["predictions"]["probabilities"]), "<f4")


@pytest.mark.parametrize("method", METHODS)
def test_a_map_is_bitwise_that_of_the_package(result, source, method):
    label = 8 if METHODS[method].class_specific else None
    np.testing.assert_array_equal(map_values(source, method=method, label=label), result.heatmap(method, label))


@pytest.mark.parametrize("method", [name for name, method in METHODS.items() if method.class_specific])
def test_a_map_of_one_class_rather_than_another_is_that_of_the_package(result, source, method):
    found = map_values(source, method=method, label=8, against=3)
    np.testing.assert_array_equal(found, result.heatmap(method, 8, against=3))
    assert not np.array_equal(found, map_values(source, method=method, label=8))


def test_two_classes_are_tested_by_the_difference_of_their_scores(result, source):
    about = {"method": "libra_fullgrad", "label": 8, "against": 3}
    wanted = result.faithfulness("libra_fullgrad", label=8, against=3)
    found = send(source, "faithfulness", **about)
    assert found["deletion"]["curve"] == pytest.approx(wanted.deletion.tolist(), abs=1e-5)
    assert found["deletion"]["curve"][0] == pytest.approx(result.logits[8] - result.logits[3], abs=1e-4)
    random = send(source, "random_order", label=8, against=3, order=2)
    assert random["insertion"]["curve"] == pytest.approx(wanted.random_insertion[2].tolist(), abs=1e-5)
    one, two = (
        send(source, "randomization", method="libra_fullgrad", label=8, **more)["correlations"][1:]
        for more in ({}, {"against": 3})
    )
    assert two == result.randomization("libra_fullgrad", 8, against=3)[1:] != one
    attention = send(source, "faithfulness", **about | {"method": "attention"})  # which compares no classes
    assert attention["insertion"]["area"] == pytest.approx(
        result.faithfulness("attention", label=8, against=3).insertion_area, abs=1e-5
    )


def test_smallest_sets_are_those_of_the_package(result, source):
    columns = result.grid[1]
    label = result.target()
    wanted = result.enough()
    first = send(source, "smallest_set", wanted="enough", label=label)
    assert [divmod(patch, columns) for patch in first["patches"]] == list(wanted.patches)
    assert first["probability"] == pytest.approx(wanted.probability) and first["is_minimal"] == wanted.is_minimal
    alone = result.drop_patches(set(np.ndindex(result.grid)) - set(wanted.patches))
    assert first["probability"] == pytest.approx(alone.probabilities[label], abs=1e-5)
    other = send(source, "smallest_set", wanted="enough", label=label, without=first["patches"])
    assert other["patches"] is None or not set(other["patches"]) & set(first["patches"])
    found = send(source, "smallest_set", wanted="needed")
    left = result.drop_patches(divmod(patch, columns) for patch in found["patches"])
    assert left.top(1)[0][0] == found["prediction"] != result.labels[label]
    assert send(source, "smallest_set", wanted="enough", without=list(range(16))) == {"patches": None}


def test_a_class_that_is_not_predicted_needs_the_patches_that_halve_its_probability(result, source, monkeypatch):
    unlikely, label = (int(index) for index in np.argsort(result.probabilities)[-3:-1])
    for wanted in ("enough", "needed"):
        request = {"kind": "smallest_set", "source": source, "wanted": wanted, "label": unlikely}
        assert "too little to keep or to lose" in complete(request)["error"]
    monkeypatch.setattr("vit_demo.inference.smallest_sets.IMPROBABLE", 0)
    found = send(source, "smallest_set", wanted="needed", label=label)
    left = result.drop_patches(divmod(patch, result.grid[1]) for patch in found["patches"])
    assert left.probabilities[label] < result.probabilities[label] / 2


def test_attention_maps_take_block_head_patch_and_direction(result, source):
    view = {"method": "attention", "block": 2, "head": 1, "query": 6, "direction": "to"}
    np.testing.assert_array_equal(map_values(source, **view), result.attention(2, 1, (1, 2), "to"))
    view = {"method": "attention", "block": 2, "head": -1, "query": None, "direction": "from"}
    np.testing.assert_array_equal(map_values(source, **view), result.attention(2))
    np.testing.assert_array_equal(
        map_values(source, method="norm_attention", block=1), result.heatmap("norm_attention", block=1)
    )


@pytest.mark.parametrize("baseline", ["mean", "blur", "black"])
def test_faithfulness_is_that_of_the_requested_map_class_and_baseline(result, source, baseline):
    view = {"method": "attention", "block": 0, "head": 2, "query": None, "direction": "from"}
    found = send(source, "faithfulness", label=8, baseline=baseline, **view)
    wanted = result.faithfulness(result.attention(0, 2), label=8, baseline=baseline)
    assert found["fractions"] == wanted.fractions.tolist()
    assert found["deletion"]["curve"] == pytest.approx(wanted.deletion.tolist(), abs=1e-6)
    assert found["insertion"]["area"] == pytest.approx(wanted.insertion_area)
    for order in (0, 4):
        random = send(source, "random_order", label=8, baseline=baseline, order=order)
        assert random["deletion"]["curve"] == pytest.approx(wanted.random_deletion[order].tolist(), abs=1e-6)
        assert random["insertion"]["curve"] == pytest.approx(wanted.random_insertion[order].tolist(), abs=1e-6)


def test_random_orders_leave_dropped_patches_out(result, source):
    left = result.drop_patches([(0, 1), (2, 2)])
    wanted = left.faithfulness("rollout")
    found = send({**source, "dropped": [1, 2 * result.grid[1] + 2]}, "random_order", label=left.target(), order=2)
    assert found["deletion"]["curve"] == pytest.approx(wanted.random_deletion[2].tolist(), abs=1e-6)


def test_logit_lens_returns_the_prediction_after_each_block(result, source):
    predictions = send(source, "logit_lens")["predictions"]
    assert [(depth["label"], depth["probability"]) for depth in predictions] == [
        ranking[0] for ranking in result.logit_lens()
    ]


def test_a_result_without_some_patches_takes_further_requests(result, source):
    sent = send({**source, "dropped": [5, 6]}, "result")
    left = result.drop_patches([(1, 1), (1, 2)])
    assert sent["dropped"] == sent["source"]["dropped"] == [5, 6]
    assert shares(sent)[0] == pytest.approx(left.top(1)[0][1])
    np.testing.assert_array_equal(map_values(sent["source"], method="relevance"), left.relevance())


def test_every_block_and_head_of_a_patch_come_in_one_reply(result, source):
    found = send(source, "attention_maps", query=6)["maps"]
    peaks = np.frombuffer(base64.b64decode(found["peaks"]), "<f4").reshape(6, -1)
    levels = np.frombuffer(base64.b64decode(found["levels"]), "<u2").reshape(*peaks.shape, *result.grid)
    wanted = result.attention_maps((1, 2))
    np.testing.assert_array_equal(peaks, wanted.max((2, 3)))
    np.testing.assert_allclose(levels / 65535 * peaks[..., None, None], wanted, atol=1e-5)
    assert "no patch" in complete({"kind": "attention_maps", "source": source, "query": 99})["error"]


def test_a_block_request_returns_the_trace_of_that_block(result, source):
    assert send(source, "block", block=1) == block_payload(result, 1)


def test_nothing_depends_on_what_is_cached(result, source):
    """A request contains all that is needed: a new engine without the picture computes it again."""
    wanted = map_values(source, method="relevance", label=5)
    forget(poll._replies)
    forget(maps._maps)
    _engines.clear()
    np.testing.assert_array_equal(map_values(source, method="relevance", label=5), wanted)


def test_a_drawing_gives_the_result_of_the_package(source):
    sent = {**source, "digit": None, "drawing": data_url(example_picture(5))}
    found = send(sent, "result")
    wanted = vit_demo.explore(example_picture(5), "digits-tiny", patch_size=7)
    assert found["predictions"]["labels"] == [label for label, _ in wanted.top(50)]
    assert found["source"]["digit"] and "drawing" not in found["source"], "other requests repeat the digit"
    np.testing.assert_array_equal(map_values(found["source"], method="relevance"), wanted.relevance())


def test_without_ink_a_message_takes_the_place_of_the_result(source):
    blank = {**source, "digit": None, "drawing": data_url(Image.new("L", (280, 280), 255))}
    assert send(blank, "result") == {"empty": True, "message": kinds.NOTHING_DRAWN}
    assert "No digit is seen" in complete({"kind": "logit_lens", "source": blank})["error"]


@pytest.mark.parametrize("name", EXAMPLE_PHOTOS)
def test_an_example_photo_is_identified_by_its_name_in_any_process(name):
    sent = {"example": name, "preset": "photos-tiny", "patch_size": 20, "fit": "crop", "dropped": []}
    found = send(sent, "result")
    wanted = vit_demo.explore(EXAMPLE_PHOTOS[name].path, "photos-tiny", patch_size=20)
    assert found["predictions"]["labels"][0] == wanted.top(1)[0][0] and found["source"] == sent


def test_an_example_digit_is_drawn_alike_on_every_server():
    sent = {"example": "digit-5", "preset": "digits-tiny", "patch_size": 7, "fit": "crop", "dropped": []}
    wanted = vit_demo.explore(example_picture(5), "digits-tiny", patch_size=7)
    assert shares(send(sent, "result"))[0] == pytest.approx(wanted.top(1)[0][1])


def test_the_menu_gets_a_model_and_what_it_costs(monkeypatch):
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)  # a page of another test may have set it
    entries = {entry["name"]: entry for entry in complete({"kind": "models"})["result"]["models"]}
    assert entries.keys() == PRESETS.keys()
    for name, preset in PRESETS.items():
        entry = model_entry(preset)
        assert entries[name] == entry if entry["on_machine"] else entry | {"sizes": [], "summary": ""}
    entry = complete({"kind": "model", "name": "digits-notebook"})["result"]
    assert entry == model_entry(PRESETS["digits-notebook"]) and entry["on_machine"]
    assert [size["size"] for size in entry["sizes"]] == [4, 7, 14]
    assert ["1,642" in s["text"] for s in entry["sizes"]].count(True) == 1, "each size has weights of its own"


def test_a_photo_is_identified_by_its_upload_in_any_process(upload):
    photo = Image.effect_noise((80, 60), 90).convert("RGB")
    request = ResultRequest(upload_source(upload(photo)), "photos-tiny", 20, "keep")
    ex = get_engine().explore_source(request.source, PRESETS["photos-tiny"], 20, "keep")
    sent = payload(ex, request)["source"]
    _engines.clear()
    found = np.frombuffer(base64.b64decode(send(sent, "map", method="rollout")["map"]), "<f4").reshape(ex.grid)
    np.testing.assert_allclose(
        found, vit_demo.explore(photo, "photos-tiny", patch_size=20, fit="keep").rollout(), atol=1e-6
    )


def test_a_picture_comes_as_a_data_url_or_as_an_upload_whose_pixels_count_as_memory(upload):
    photo, before = Image.effect_noise((300, 200), 90).convert("RGB"), parse._pictures.num_bytes
    assert parse.image_source(data_url(photo, lossless=True)).read() == photo
    assert parse._pictures.num_bytes == before
    assert upload_source(upload(photo)).read() == photo and parse._pictures.num_bytes >= before + 3 * 300 * 200
