"""The service, on a tiny network with seeded weights, against the network called by hand."""

import math
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from vit_demo import features, methods, metrics
from vit_demo.accelerator import best_device
from vit_demo.errors import CheckpointError, EmptySketchError, ImageError, InputError, LabelError, PresetError
from vit_demo.images import preprocess
from vit_demo.inference import engine as module
from vit_demo.inference import shared
from vit_demo.inference.engine import Engine
from vit_demo.inference.limits import forward_bytes
from vit_demo.inference.shared import get_engine, reset_engines
from vit_demo.model import ViT, ViTConfig
from vit_demo.weights import PRESETS

CONFIG = ViTConfig(image_size=32, patch_size=8, num_classes=3, embed_dim=16, depth=3, num_heads=2)
HALF = (0.5, 0.5, 0.5)


@pytest.fixture
def photo():
    noise = np.random.default_rng(0).integers(0, 256, (40, 64, 3), np.uint8)
    return Image.fromarray(noise)


@pytest.fixture(params=["cls", "mean"])
def tiny(request, monkeypatch):
    """An engine whose only photo preset is a small random network."""
    torch.manual_seed(0)
    config = replace(CONFIG, pool=request.param, class_token=request.param == "cls")
    preset = replace(PRESETS["photos-tiny"], config=config, labels=("a", "b", "c"), patch_sizes=(4, 8), mean=HALF)
    model = ViT(config).eval()
    monkeypatch.setitem(PRESETS, "photos-tiny", preset)
    loads = []
    monkeypatch.setattr(module, "load_model", lambda preset, size: loads.append(size) or model)
    engine = Engine("cpu")
    return engine, model, loads


def full_attention(model, tensor, patch_size):
    """Every block's attention by the definition, ``[blocks, heads, N, N]``."""
    maps = []
    x = model.embed(tensor, (tensor.shape[2] // patch_size, tensor.shape[3] // patch_size), patch_size)
    for block in model.blocks:
        attention = block.attn
        q, k, _ = attention.qkv(block.norm1(x)).unflatten(2, (3, attention.num_heads, -1)).permute(2, 0, 3, 1, 4)
        maps.append((q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)[0])
        x = block(x)
    return torch.stack(maps).detach().numpy()


@pytest.mark.parametrize(("patch_size", "fit"), [(8, "crop"), (4, "keep"), (8, "squash")])
def test_an_exploration_equals_the_network_called_by_hand(tiny, photo, patch_size, fit):
    engine, model, _ = tiny
    ex = engine.explore(photo, "photos-tiny", patch_size, fit)
    tensor, _ = preprocess(photo, image_size=32, patch_size=patch_size, mean=HALF, std=HALF, mode=fit)
    with torch.no_grad():
        expected = model(tensor, patch_size=patch_size)[0]
    np.testing.assert_allclose(ex.logits, expected, atol=1e-5)
    best = int(expected.argmax())
    assert ex.top(1)[0] == ("abc"[best], pytest.approx(float(expected.softmax(0)[best]), abs=1e-6))
    assert sum(p for _, p in ex.top(5)) == pytest.approx(1)
    rows, cols = ex.grid
    assert (rows * patch_size, cols * patch_size) == tensor.shape[2:]
    prefix = model.config.num_prefix_tokens
    maps = full_attention(model, tensor, patch_size)
    for layer, head, query in [(0, None, (0, 0)), (-1, 1, (rows - 1, cols - 1)), (1, 0, (1, 2))]:
        wanted = maps[layer].mean(0) if head is None else maps[layer][head]
        token = prefix + query[0] * cols + query[1]
        np.testing.assert_allclose(
            ex.attention(layer, head, query), wanted[token, prefix:].reshape(rows, cols), atol=1e-5
        )
        np.testing.assert_allclose(
            ex.attention(layer, head, query, "to"), wanted[prefix:, token].reshape(rows, cols), atol=1e-5
        )
    summary = maps[:, :, 0] if prefix else maps.mean(2)
    np.testing.assert_allclose(ex.attention_maps(), summary[..., prefix:].reshape(3, 2, rows, cols), atol=1e-5)
    rollout = np.eye(maps.shape[-1])
    for attention in maps.mean(1):
        rollout = (attention + np.eye(len(attention))) / 2 @ rollout
    carried = rollout[0] if prefix else rollout.mean(0)
    np.testing.assert_allclose(ex.rollout(), carried[prefix:].reshape(rows, cols), atol=1e-5)
    assert ex.overlay(ex.rollout()).size == ex.image.size


def test_the_same_picture_costs_one_pass_and_one_load(tiny, photo):
    engine, _, loads = tiny
    first = engine.explore(photo, "photos-tiny", 8)
    assert engine.explore(photo.copy(), "photos-tiny", 8) is first
    assert engine.explore(photo, "photos-tiny", 4) is not first
    assert engine.explore(photo, "photos-tiny", 8, "keep") is not first
    assert loads == [8] and engine.loaded == ["photos-tiny"]


def test_pictures_of_the_same_bytes_in_another_shape_are_different_pictures(tiny):
    engine, _, _ = tiny
    flat = np.random.default_rng(0).integers(0, 256, 40 * 64 * 3, np.uint8)
    wide, tall = (Image.fromarray(flat.reshape(shape)) for shape in ((40, 64, 3), (64, 40, 3)))
    assert wide.tobytes() == tall.tobytes()
    first, second = engine.explore(wide, "photos-tiny", 8), engine.explore(tall, "photos-tiny", 8)
    assert second is not first and not np.array_equal(first.pixels, second.pixels)


@pytest.mark.parametrize("threshold", [0.2, 0.4, 0.6, 0.9])
def test_a_prediction_is_sure_from_the_threshold_of_its_preset_on(tiny, photo, threshold):
    engine, _, _ = tiny
    ex = engine.explore(photo, "photos-tiny", 8)
    preset = replace(ex.preset, confidence_threshold=threshold, max_entropy=math.inf)
    for probability, sure in ((threshold - 0.01, False), (threshold + 0.01, True)):
        rest = (1 - probability) / 200
        logits = np.log(np.array([rest] * 100 + [probability] + [rest] * 100, np.float32))
        assert replace(ex, preset=preset, logits=logits).is_sure is sure
    assert not replace(ex, preset=preset, logits=np.zeros(0, np.float32)).is_sure


def test_a_prediction_is_not_sure_if_the_rest_of_the_probability_is_spread_over_many_classes(tiny, photo):
    engine, _, _ = tiny
    ex = engine.explore(photo, "photos-tiny", 8)
    few = np.array([0.6, 0.4] + [0.0] * 48)
    many = np.array([0.6] + [0.4 / 49] * 49)
    for limit, sure in ((0.9, [False, False]), (4.0, [True, False]), (5.0, [True, True])):
        preset = replace(ex.preset, confidence_threshold=0.5, max_entropy=limit)
        with np.errstate(divide="ignore"):
            found = [replace(ex, preset=preset, logits=np.log(p).astype(np.float32)).is_sure for p in (few, many)]
        assert found == sure
        for p, expected in zip((few, many), sure, strict=True):  # by a plain loop
            assert (sum((q * (1 - q)) ** 0.5 for q in p) <= limit) == expected


def test_the_memory_is_bounded_and_nothing_depends_on_it(tiny, photo, monkeypatch):
    engine, _, _ = tiny
    one = engine.explore(photo, "photos-tiny", 8).num_bytes
    monkeypatch.setattr("vit_demo.inference.limits.RESULT_BYTES", int(2.5 * one))
    engine = Engine("cpu")
    pictures = [photo.rotate(angle) for angle in (0, 90, 180, 270)]
    results = [engine.explore(picture, "photos-tiny", 8) for picture in pictures]
    assert [engine.explore(p, "photos-tiny", 8) is r for p, r in zip(pictures[2:], results[2:], strict=True)] == [
        True
    ] * 2
    again = engine.explore(pictures[0], "photos-tiny", 8)
    assert again is not results[0]
    np.testing.assert_array_equal(again.logits, results[0].logits)


def test_a_result_depends_neither_on_caches_nor_on_later_changes_of_its_preset(tiny, photo, monkeypatch):
    """It holds its preset, so neither a full cache nor a preset trained anew changes the maps of a result in hand."""
    engine, model, _ = tiny
    ex = engine.explore(photo, "photos-tiny", 8)
    wanted = ex.relevance("b")
    monkeypatch.setitem(PRESETS, "photos-tiny", replace(PRESETS["photos-tiny"], labels=("x", "y", "z"), mean=(0, 0, 0)))
    engine._models.max_bytes = engine._results.max_bytes = 0
    engine._models.put("nothing", model)
    np.testing.assert_array_equal(ex.relevance("b"), wanted)
    assert ex.drop_patches([(0, 0)]).top(1) and ex.is_sure in (True, False)


def test_threads_get_the_results_of_their_own_pictures(tiny, photo):
    engine, _, loads = tiny
    pictures = [photo.rotate(angle) for angle in range(0, 360, 30)]
    alone = [Engine.explore(engine, p, "photos-tiny", 8).logits for p in pictures]
    engine = Engine("cpu")
    found = [None] * len(pictures)

    def work(i):
        found[i] = engine.explore(pictures[i], "photos-tiny", 8).logits

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(pictures))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_allclose(found, alone, atol=1e-6)
    assert len(loads) == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"layer": 3}, "no block 3"),
        ({"head": 2}, "no head 2"),
        ({"query": (4, 0)}, "no patch"),
        ({"query": (0, -1)}, "no patch"),
        ({"direction": "up"}, "direction"),
    ],
)
def test_invalid_layers_heads_and_queries_are_refused_in_one_sentence(tiny, photo, arguments, words):
    engine, _, _ = tiny
    with pytest.raises(ValueError, match=words):
        engine.explore(photo, "photos-tiny", 8).attention(**arguments)


def test_bad_input_is_refused_and_the_next_request_works(tiny, photo):
    engine, _, _ = tiny
    with pytest.raises(ImageError):
        engine.explore(b"not a picture", "photos-tiny", 8)
    with pytest.raises(PresetError):
        engine.explore(photo, "photos-tiny", 5)
    with pytest.raises(PresetError):
        engine.explore(photo, "nothing", 8)
    with pytest.raises(EmptySketchError):
        engine.explore(np.zeros((100, 100), np.uint8), "digits-tiny", 4)
    assert engine.explore(photo, "photos-tiny", 8).grid == (4, 4)


@pytest.mark.parametrize("method", methods.METHODS)
def test_every_method_by_name_is_that_of_the_network(tiny, photo, method):
    engine, model, _ = tiny
    ex, specific = engine.explore(photo, "photos-tiny", 4), methods.METHODS[method].class_specific
    for label, target in ((None, int(ex.logits.argmax())), ("c", 2)):
        wanted = methods.METHODS[method].compute(model, ex.pixels, target, patch_size=4, kept_patches=None)[0]
        found = ex.heatmap(method, label)
        assert found.shape == (8, 8) and found.dtype == np.float32
        np.testing.assert_allclose(found, wanted, atol=1e-5)
        assert ex.overlay(found).size == ex.image.size
    if specific:
        assert np.abs(ex.heatmap(method, "a") - ex.heatmap(method, 1)).max() > 1e-6


def test_the_logit_lens_lists_the_predictions_of_each_block(tiny, photo):
    engine, model, _ = tiny
    ex = engine.explore(photo, "photos-tiny", 8)
    rankings = ex.logit_lens()
    wanted = features.logit_lens(model, ex.pixels, patch_size=8)[0].softmax(1)
    assert len(rankings) == 4 and all(len(ranking) == 3 for ranking in rankings)
    for ranking, row in zip(rankings, wanted, strict=True):
        assert [p for _, p in ranking] == sorted((p for _, p in ranking), reverse=True)
        assert {label: pytest.approx(p, abs=1e-5) for label, p in ranking} == dict(
            zip("abc", row.tolist(), strict=True)
        )
    assert rankings[-1] == [(label, pytest.approx(p, abs=1e-5)) for label, p in ex.top(3)]


def test_dropped_patches_leave_the_sequence_and_every_map_keeps_its_grid(tiny, photo):
    engine, model, _ = tiny
    ex = engine.explore(photo, "photos-tiny", 8)
    gone = [(0, 1), (2, 2), (3, 0)]
    left = ex.drop_patches(gone[:1]).drop_patches(gone[1:])
    kept_patches = torch.tensor([[i for i in range(16) if divmod(i, 4) not in gone]])
    with torch.no_grad():
        expected = model(ex.pixels, patch_size=8, kept_patches=kept_patches)[0]
    np.testing.assert_allclose(left.logits, expected, atol=1e-5)
    assert left.dropped == tuple(gone) and left.grid == (4, 4) and ex.dropped == ()
    for method in methods.METHODS:
        values = left.heatmap(method, "b")
        assert all(values[at] == 0 for at in gone) and np.count_nonzero(values) > 6
    wanted = methods.relevance(model, ex.pixels, 1, patch_size=8, kept_patches=kept_patches)[0]
    np.testing.assert_allclose(left.relevance("b"), wanted, atol=1e-6)
    maps = left.attention_maps(query=(3, 3))
    np.testing.assert_allclose(maps[:, 0], [left.attention(layer, 0, (3, 3)) for layer in range(3)], atol=1e-6)
    if model.config.pool == "mean":
        np.testing.assert_allclose(maps.sum((2, 3)), 1, atol=1e-5)
    # Who looks at a patch is read at that patch's own place: its row holds what it gives to itself.
    own = left.attention(-1, None, (3, 3), "to")[3, 3]
    assert own == pytest.approx(left.attention(-1, None, (3, 3))[3, 3], abs=1e-6)
    assert ex.drop_patches([]) is ex and left.drop_patches(gone) is left


def test_patches_that_cannot_be_dropped_are_refused_in_one_sentence(tiny, photo):
    engine, _, _ = tiny
    ex = engine.explore(photo, "photos-tiny", 8)
    with pytest.raises(ValueError, match="no patch"):
        ex.drop_patches([(4, 0)])
    with pytest.raises(ValueError, match="must stay"):
        ex.drop_patches([divmod(i, 4) for i in range(16)])
    with pytest.raises(ValueError, match="was dropped"):
        ex.drop_patches([(1, 1)]).attention(query=(1, 1))


@pytest.mark.parametrize("baseline", ["mean", "blur", "black"])
def test_faithfulness_by_name_or_of_a_map(tiny, photo, baseline):
    engine, model, _ = tiny
    ex = engine.explore(photo, "photos-tiny", 8)
    found = ex.faithfulness("relevance", steps=4, label="b", baseline=baseline, seeds=2)
    empty = {"mean": torch.zeros(1), "black": torch.full((1,), -1.0), "blur": metrics.blur(ex.pixels, 32)}[baseline]
    wanted = metrics.faithfulness(
        model, ex.pixels, 1, torch.from_numpy(ex.relevance("b")), empty, steps=4, seeds=2, patch_size=8
    )
    np.testing.assert_allclose(found.deletion, wanted.deletion, atol=1e-5)
    np.testing.assert_allclose(found.random_insertion, wanted.random_insertion, atol=1e-5)
    own = ex.faithfulness(ex.relevance("b"), steps=4, label="b", baseline=baseline, seeds=2)
    assert own.insertion_area == pytest.approx(found.insertion_area)
    assert len(ex.randomization("rollout")) == 5


@pytest.mark.parametrize(
    ("ask", "error", "words"),
    [
        (lambda ex: ex.relevance("dog"), LabelError, "no class 'dog'"),
        (lambda ex: ex.relevance(3), LabelError, "no class 3"),
        (lambda ex: ex.heatmap("occlusion", -1), LabelError, "no class -1"),
        (lambda ex: ex.heatmap("magic"), ValueError, "no method 'magic'"),
        (lambda ex: ex.faithfulness("magic"), ValueError, "no method 'magic'"),
        (lambda ex: ex.faithfulness("rollout", baseline="pink"), ValueError, "no baseline 'pink'"),
        (lambda ex: ex.faithfulness(np.zeros((2, 2))), ValueError, r"the shape \(4, 4\)"),
        (lambda ex: ex.heatmap("value_weighted", layer=3), ValueError, "no block 3"),
    ],
)
def test_invalid_requests_are_refused_in_one_sentence(tiny, photo, ask, error, words):
    engine, _, _ = tiny
    with pytest.raises(error, match=words):
        ask(engine.explore(photo, "photos-tiny", 8))


def test_an_engine_is_on_the_device_that_is_named_and_otherwise_on_the_best(monkeypatch):
    for one in (module, shared):
        monkeypatch.setattr(one, "best_device", lambda: torch.device("meta"))
    reset_engines()
    try:
        assert get_engine().device == Engine().device == torch.device("meta")
        assert get_engine("cpu").device == Engine("cpu").device == torch.device("cpu")
    finally:
        reset_engines()


@pytest.mark.parametrize(("slow", "passes"), [(False, 3), (True, 8)])
def test_slow_work_counts_as_more_memory(tiny, monkeypatch, slow, passes):
    engine, _, _ = tiny
    seen = []
    monkeypatch.setattr(engine.jobs, "run", lambda key, work, lane, nbytes: seen.append((lane, nbytes)))
    engine.run_on_model(PRESETS["photos-tiny"], 8, print, slow=slow)
    lane = "slow" if slow else "photos"
    assert seen == [(lane, passes * forward_bytes(PRESETS["photos-tiny"], 8))]


def test_a_device_has_one_engine_however_it_is_named(monkeypatch):
    best = str(best_device())
    assert get_engine() is get_engine(None) is get_engine(best)
    found, made = [], []

    def slowly(name):
        made.append(name)
        time.sleep(0.05)
        return Engine(name)

    monkeypatch.setattr(shared, "Engine", slowly)
    reset_engines()
    threads = [threading.Thread(target=lambda: found.append(get_engine("cpu"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, found))) == 1 and made == ["cpu"]
    reset_engines()


def test_equal_requests_at_once_make_one_pass(tiny, photo, monkeypatch):
    engine, _, _ = tiny
    passes, plain = [], engine._execute

    def slowly(*arguments):
        passes.append(1)
        time.sleep(0.2)
        return plain(*arguments)

    engine._execute = slowly
    found = []
    threads = [threading.Thread(target=lambda: found.append(engine.explore(photo, "photos-tiny", 8))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(passes) == 1 and len(set(map(id, found))) == 1


def test_weights_that_give_no_number_are_refused(tiny, photo):
    engine, model, _ = tiny
    with torch.no_grad():
        model.head.bias[0] = float("nan")
    with pytest.raises(CheckpointError, match="not a number"):
        engine.explore(photo, "photos-tiny", 8)


def test_unknown_options_are_refused(tiny, photo):
    engine, _, _ = tiny
    ex = engine.explore(photo, "photos-tiny", 8)
    with pytest.raises(InputError, match="occlusion has no option 'budget'"):
        ex.heatmap("occlusion", budget=3)
    np.testing.assert_array_equal(ex.heatmap("attention", layer=0, head=1), ex.attention(0, 1))
    assert ex.heatmap("patch_dropping", budget=8, seed=1).shape == (4, 4)
