"""The service, on a tiny network with seeded weights, against the network called by hand."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image

from vit_demo.accelerator import best_device
from vit_demo.errors import CheckpointError, EmptyDrawingError, ImageError, PresetError
from vit_demo.images import preprocess
from vit_demo.inference import forward
from vit_demo.service import engine as module
from vit_demo.service.engine import Engine, _engines, get_engine
from vit_demo.service.job_limits import job_bytes
from vit_demo.service.source import Source
from vit_demo.weights import PRESETS

from ..asynchronous import a_moment, at_once

HALF = (0.5, 0.5, 0.5)


def full_attention(model, tensor, patch_size):
    """Every block's attention by the definition, ``[blocks, heads, N, N]``."""
    maps = []
    x = model.module.embed(tensor, (tensor.shape[2] // patch_size, tensor.shape[3] // patch_size), patch_size)
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
    for block, head, query in [(0, None, (0, 0)), (-1, 1, (rows - 1, cols - 1)), (1, 0, (1, 2))]:
        wanted = maps[block].mean(0) if head is None else maps[block][head]
        token = prefix + query[0] * cols + query[1]
        np.testing.assert_allclose(
            ex.attention(block, head, query), wanted[token, prefix:].reshape(rows, cols), atol=1e-5
        )
        np.testing.assert_allclose(
            ex.attention(block, head, query, "to"), wanted[prefix:, token].reshape(rows, cols), atol=1e-5
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


def test_a_model_of_the_hub_is_ready_once_it_is_loaded(tiny, monkeypatch):
    monkeypatch.setattr(module, "is_on_machine", lambda preset: False)
    assert tiny[0].ready("photos-tiny") is None
    tiny[0].warm_up("photos-tiny").result()
    assert tiny[0].ready("photos-tiny") is PRESETS["photos-tiny"]


def test_what_was_looked_up_on_the_hub_is_kept_for_those_who_may_use_it(monkeypatch):
    hub = replace(PRESETS["photos-tiny"], source="hub")
    found = {"someone/cats": hub, "a/folder": replace(hub, source="folder")}
    monkeypatch.setattr(module, "find_preset", lambda name, progress, trusted, proved: found[name])
    monkeypatch.setattr(module, "fetch_files", lambda preset, progress: progress("weights", 1, 2))
    monkeypatch.setattr(module, "is_on_machine", lambda preset: True)
    engine, heard = Engine("cpu"), []
    for name in found:
        engine.prepare(name, lambda *given: heard.append(given)).result()
    assert heard == [("weights", 1, 2)] * 2
    assert engine.ready("someone/cats") is hub and engine.ready("someone/cats", trusted=False) is None
    assert engine.ready("a/folder") is None, "its files may change"


def test_pictures_of_the_same_bytes_in_another_shape_are_different_pictures(tiny):
    engine, _, _ = tiny
    flat = np.random.default_rng(0).integers(0, 256, 40 * 64 * 3, np.uint8)
    wide, tall = (Image.fromarray(flat.reshape(shape)) for shape in ((40, 64, 3), (64, 40, 3)))
    assert wide.tobytes() == tall.tobytes()
    assert Source.of(wide) == Source.of(wide.copy()) != Source.of(tall)
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
        assert replace(ex, preset=preset, logits=logits).is_confident is sure
    assert not replace(ex, preset=preset, logits=np.zeros(0, np.float32)).is_confident


def test_a_prediction_is_not_sure_if_the_rest_of_the_probability_is_spread_over_many_classes(tiny, photo):
    engine, _, _ = tiny
    ex = engine.explore(photo, "photos-tiny", 8)
    few = np.array([0.6, 0.4] + [0.0] * 48)
    many = np.array([0.6] + [0.4 / 49] * 49)
    for limit, sure in ((0.9, [False, False]), (4.0, [True, False]), (5.0, [True, True])):
        preset = replace(ex.preset, confidence_threshold=0.5, max_entropy=limit)
        with np.errstate(divide="ignore"):
            found = [replace(ex, preset=preset, logits=np.log(p).astype(np.float32)).is_confident for p in (few, many)]
        assert found == sure
        for p, expected in zip((few, many), sure, strict=True):  # by a plain loop
            assert (sum((q * (1 - q)) ** 0.5 for q in p) <= limit) == expected


def test_the_memory_is_bounded_and_nothing_depends_on_it(tiny, photo, monkeypatch):
    engine, _, _ = tiny
    one = engine.explore(photo, "photos-tiny", 8).num_bytes
    monkeypatch.setattr("vit_demo.service.job_limits.RESULT_BYTES", int(2.5 * one))
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
    assert ex.drop_patches([(0, 0)]).top(1) and ex.is_confident in (True, False)


def test_threads_get_the_results_of_their_own_pictures(tiny, photo):
    engine, _, loads = tiny
    pictures = [photo.rotate(angle) for angle in range(0, 360, 30)]
    alone = [Engine.explore(engine, p, "photos-tiny", 8).logits for p in pictures]
    engine = Engine("cpu")
    found = at_once(*(lambda p=p: engine.explore(p, "photos-tiny", 8).logits for p in pictures))
    np.testing.assert_allclose(found, alone, atol=1e-6)
    assert len(loads) == 2


def test_bad_input_is_refused_and_the_next_request_works(tiny, photo):
    engine, _, _ = tiny
    with pytest.raises(ImageError):
        engine.explore(b"not a picture", "photos-tiny", 8)
    with pytest.raises(PresetError):
        engine.explore(photo, "photos-tiny", 5)
    with pytest.raises(PresetError):
        engine.explore(photo, "nothing", 8)
    with pytest.raises(EmptyDrawingError):
        engine.explore(np.zeros((100, 100), np.uint8), "digits-tiny", 4)
    assert engine.explore(photo, "photos-tiny", 8).grid == (4, 4)


def test_an_engine_is_on_the_device_that_is_named_and_otherwise_on_the_best(tiny, photo, monkeypatch):
    monkeypatch.setattr(module, "best_device", lambda **_: torch.device("meta"))
    assert np.isfinite(tiny[0].explore(photo, "photos-tiny", 8).logits).all(), "it computes on the processor"
    _engines.clear()
    try:
        assert get_engine().device == Engine().device == torch.device("meta")
        assert get_engine("cpu").device == Engine("cpu").device == torch.device("cpu")
    finally:
        _engines.clear()


@pytest.mark.parametrize("slow", [False, True])
def test_work_counts_with_its_memory(tiny, monkeypatch, slow):
    engine, _, _ = tiny
    seen = []
    monkeypatch.setattr(engine.jobs, "run", lambda key, work, pool, nbytes: seen.append((pool, nbytes)))
    engine.run_on_model(PRESETS["photos-tiny"], 8, print, slow=slow)
    pool = "slow" if slow else "photos"
    assert seen == [(pool, job_bytes(PRESETS["photos-tiny"], 8, slow=slow))]


@pytest.mark.parametrize("slow", [False, True])
def test_models_that_visitors_bring_have_pools_of_their_own(tiny, monkeypatch, slow):
    engine, _, _ = tiny
    brought, pools = replace(PRESETS["photos-tiny"], trusted=False), []
    monkeypatch.setattr(engine.jobs, "run", lambda key, work, pool, nbytes=0: pools.append(pool))
    engine.run_on_model(brought, 8, print, slow=slow)
    engine.model(brought, 8)
    file = Source(("file", 1), lambda: None, is_decoded=lambda: False)
    engine.explore_source(file, brought, 8)
    assert pools == ["custom slow" if slow else "custom", "custom", "custom"]


def test_a_device_has_one_engine_however_it_is_named(monkeypatch):
    best = str(best_device())
    assert get_engine() is get_engine(None) is get_engine(best)
    made = []

    def slowly(name):
        made.append(name)
        a_moment()
        return Engine(name)

    monkeypatch.setattr(module, "Engine", slowly)
    _engines.clear()
    found = at_once(*[lambda: get_engine("cpu")] * 8)
    assert len(set(map(id, found))) == 1 and made == ["cpu"]
    _engines.clear()


def test_equal_requests_at_once_make_one_pass(tiny, photo, monkeypatch):
    engine, _, _ = tiny
    passes, plain = [], engine._execute

    def slowly(*arguments):
        passes.append(1)
        a_moment()
        return plain(*arguments)

    engine._execute = slowly
    found = at_once(*[lambda: engine.explore(photo, "photos-tiny", 8)] * 6)
    assert len(passes) == 1 and len(set(map(id, found))) == 1


def test_weights_that_give_no_number_are_refused(tiny, photo):
    engine, model, _ = tiny
    with torch.no_grad():
        model.head.bias[0] = float("nan")
    with pytest.raises(CheckpointError, match="not a number"):
        engine.explore(photo, "photos-tiny", 8)


def test_a_cold_pass_is_not_timed_and_the_shorter_of_the_next_two_counts(network, monkeypatch):
    """The first pass at a size also derives the weights for it, and the second may share the processor with others."""
    clock = iter([0.0, 5.0, 5.0, 6.0])
    monkeypatch.setattr(forward, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    assert forward.forward_with_trace(network(), torch.randn(1, 3, 16, 16), patch_size=2)[2] == 1.0
    monkeypatch.undo()
    model, images, seen = network(), torch.randn(1, 3, 16, 16), []
    model.register_forward_pre_hook(lambda *_: seen.append(1))
    forward.forward_with_trace(model, images, patch_size=2)
    assert len(seen) == 3
    forward.forward_with_trace(model, images, patch_size=2)
    assert len(seen) == 4
    forward.forward_with_trace(model, torch.randn(1, 3, 16, 24), patch_size=2)
    assert len(seen) == 7


@pytest.mark.parametrize("size", [(1, 1), (15, 400), (400, 15)])
def test_a_photo_with_too_few_pixels_is_refused(size):
    picture = Image.new("RGB", size, "red")
    with pytest.raises(ImageError, match=f"too small, {size[0]} x {size[1]} pixels: choose one with at least"):
        get_engine().explore(picture, "photos-tiny")
    assert get_engine().explore(Image.effect_noise((16, 16), 80), "photos-tiny").grid == (10, 10)


@pytest.mark.parametrize("colour", ["red", "black", "white", "#7f7f7f"])
def test_a_plain_colour_never_gets_a_sure_answer(colour):
    assert not get_engine().explore(Image.new("RGB", (200, 120), colour), "photos-tiny").is_confident
