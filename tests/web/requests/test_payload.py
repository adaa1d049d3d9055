"""What is sent to the browser, decoded by numpy, against the exploration it stands for."""

import base64
import io
import json

import numpy as np
import pytest
from PIL import Image

from vit_demo import methods
from vit_demo.service.engine import Engine
from vit_demo.web.catalog.example_digits import example_picture
from vit_demo.web.requests.packing import pack
from vit_demo.web.requests.payload import block_payload, model_input, payload

from ...replies import unpack


@pytest.fixture(scope="module", params=[2, 4])
def result(request):
    return Engine("cpu").explore(example_picture(3), "digits-tiny", request.param)


def decode(text, kind, shape):
    return np.frombuffer(base64.b64decode(text), kind).reshape(shape).astype(np.float64)


def test_the_maps_are_the_true_ones_to_every_digit_that_the_page_shows(result):
    sent = payload(result)
    rows, cols = sent["grid"]
    shape = (sent["num_blocks"], sent["num_heads"])
    assert sent["milliseconds"] == 1000 * result.seconds
    peaks = decode(sent["attention_maps"]["peaks"], "<f4", shape)
    maps = decode(sent["attention_maps"]["levels"], "<u2", (*shape, rows, cols)) / 65535 * peaks[..., None, None]
    wanted = result.attention_maps()
    assert (np.abs(maps - wanted).max((2, 3)) <= peaks / 65535).all()
    assert np.abs(maps - wanted).max() < 0.0001 / 10, "the page shows 0.01 % at best"
    peak = decode(sent["rollout"]["peaks"], "<f4", ())
    rollout = decode(sent["rollout"]["levels"], "<u2", (rows, cols)) / 65535 * peak
    np.testing.assert_allclose(rollout, result.rollout(), atol=peak / 65535)


def test_queries_and_keys_give_every_attention_value(result):
    sent = payload(result)
    tokens = sent["num_prefix_tokens"] + sent["grid"][0] * sent["grid"][1]
    assert sent["trace_bytes"] == sum(len(base64.b64decode(text)) for text in block_payload(result, 0).values())
    for block in range(sent["num_blocks"]):
        trace = block_payload(result, block)
        q, k = (decode(trace[name], "<f2", (sent["num_heads"], tokens, -1)) for name in "qk")
        logsumexp = decode(trace["logsumexp"], "<f4", (sent["num_heads"], tokens))
        attention = np.exp(q @ k.transpose(0, 2, 1) - logsumexp[..., None])
        np.testing.assert_allclose(attention, methods.attention_matrix(result.trace, block)[0], atol=1e-3)


def test_a_dropped_patch_has_no_token_but_a_place_in_every_map(result):
    left = result.drop_patches([(2, 3), (0, 0)])
    sent = payload(left)
    rows, cols = sent["grid"]
    assert sent["dropped"] == [0, 2 * cols + 3] and sent["grid"] == list(result.grid)
    tokens = sent["num_prefix_tokens"] + rows * cols - 2
    trace = block_payload(left, 5)
    q, k = (decode(trace[name], "<f2", (sent["num_heads"], tokens, -1)) for name in "qk")
    scores = q[:, :1] @ k.transpose(0, 2, 1)
    row = np.exp(scores - decode(trace["logsumexp"], "<f4", (sent["num_heads"], tokens))[:, :1, None])
    wanted = left.attention().flatten()
    assert wanted[sent["dropped"]].tolist() == [0, 0]
    kept = np.delete(wanted, sent["dropped"])
    np.testing.assert_allclose(row[:, 0].mean(0)[sent["num_prefix_tokens"] :], kept, atol=1e-3)


def test_the_patches_of_a_wide_photo_are_counted_row_by_row():
    scene = np.random.default_rng(0).integers(0, 256, (100, 200, 3), np.uint8)
    wide = Engine("cpu").explore(scene, "photos-tiny", 20, "keep")
    rows, cols = wide.grid
    left = wide.drop_patches([(0, cols - 1), (rows - 1, 0), (1, rows + 1)])
    sent, wanted = payload(left), [cols - 1, cols + rows + 1, (rows - 1) * cols]
    assert sent["grid"] == [rows, cols] and cols > rows + 1 and sent["size"][0] * rows == sent["size"][1] * cols
    assert sent["dropped"] == sent["source"]["dropped"] == wanted
    maps = decode(sent["attention_maps"]["levels"], "<u2", (sent["num_blocks"], sent["num_heads"], rows, cols))
    assert np.flatnonzero((maps == 0).all((0, 1))).tolist() == wanted


def test_predictions_carry_the_index_of_their_class(result):
    sent = payload(result)["predictions"]
    index = np.frombuffer(base64.b64decode(sent["indices"]), "<u2")
    assert sorted(index) == list(range(len(result.labels))), "every class can be asked about"
    assert [result.labels[i] for i in index] == sent["labels"]
    np.testing.assert_array_equal(decode(sent["probabilities"], "<f4", (-1,)), result.probabilities[index])


@pytest.mark.parametrize("dropped", [(), [(2, 3), (0, 0)]])
def test_the_early_answers_of_few_classes_come_with_the_result(result, dropped):
    ex = result.drop_patches(dropped)
    early = decode(payload(ex)["early"], "<f4", (ex.trace.num_blocks + 1, 10))
    np.testing.assert_allclose(early[-1], ex.probabilities, atol=1e-6)
    for row, ranking in zip(early, ex.logit_lens(), strict=True):
        np.testing.assert_allclose(row, [dict(ranking)[label] for label in ex.labels], atol=1e-5)
    assert ex.trace.tokens == [] and not np.allclose(early[0], early[-1], atol=0.1)


def test_a_drawing_comes_with_the_square_that_the_network_gets(result):
    small = Image.new("L", (400, 300), 255)
    small.paste(example_picture(3).resize((140, 140)), (200, 100))
    row, column, side = payload(result)["box"]
    wanted = (100 + 140 * row) / 400, (200 + 140 * column) / 400, 140 * side / 400
    assert payload(Engine("cpu").explore(small, "digits-tiny"))["box"] == pytest.approx(wanted, abs=0.005)
    photo = payload(Engine("cpu").explore(np.zeros((100, 200, 3), np.uint8), "photos-tiny"))
    assert photo["box"] is None and photo["early"] is None, "its 50 classes are too many"


def test_it_is_json_a_browser_can_read_and_new_each_time(result):
    first, second = payload(result), payload(result)
    assert first["run"] != second["run"] and first["source"] == second["source"]
    assert len(pack({"result": first})) < 12_000 and unpack(pack(first)) == json.loads(json.dumps(first))
    assert first["image"].startswith("data:image/png;base64,") and first["size"] == [28, 28]
    np.testing.assert_array_equal(model_input(result), result.image)
    assert first["predictions"]["labels"] == [label for label, _ in result.top(10)]


@pytest.mark.parametrize(
    ("fit", "box"), [("crop", [0.25, 0, 0.75, 1]), ("squash", [0, 0, 1, 1]), ("keep", [0, 0, 1, 1])]
)
def test_a_photo_comes_with_the_part_that_the_model_saw_and_a_drawing_without(result, fit, box):
    assert payload(result)["photo"] is None
    scene = np.zeros((100, 200, 3), np.uint8)
    sent = payload(Engine("cpu").explore(scene, "photos-tiny", 20, fit))["photo"]
    assert sent["fit"] == fit and sent["box"] == pytest.approx(box)
    whole = Image.open(io.BytesIO(base64.b64decode(sent["image"].partition(",")[2])))
    assert whole.size == (192, 96)


def test_what_is_said_of_a_prediction_that_means_little(result):
    assert payload(result)["note"] == "" and result.is_confident
    engine = Engine("cpu")
    grey = engine.explore(Image.new("RGB", (60, 60), "grey"), "photos-tiny")
    assert payload(grey)["note"].startswith("The picture is one plain colour")
    noise = np.random.default_rng(0).integers(0, 256, (60, 60, 3), dtype=np.uint8)
    photo = engine.explore(Image.fromarray(noise), "photos-tiny")
    assert payload(photo)["note"] == (
        "Uncertain: many pictures of something else get percentages like these. The first of the \u206850\u2069 "
        "classes may still be right."
    )
