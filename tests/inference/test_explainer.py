"""``Explainer``: one network, many images; each way gives what single calls give, in the caller's thread."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import timm
import torch
from PIL import Image

import vit_demo
from vit_demo.errors import ImageError, InputError, LabelError
from vit_demo.methods import METHODS
from vit_demo.trace import TracedViT
from vit_demo.web.catalog.example_photos import EXAMPLE_PHOTOS

from ..trace.networks import timm_vit
from .test_modules import NAMES, own

PHOTOS = [photo.path for photo in EXAMPLE_PHOTOS.values()][:3]
FEW = {"local_surrogate": {"budget": 12}, "integrated_gradients": {"steps": 4}}


@pytest.fixture(scope="module")
def module():
    torch.manual_seed(3)
    return own()


@pytest.fixture(scope="module")
def batch():
    return torch.randn(3, 3, 32, 32, generator=torch.Generator().manual_seed(4))


@pytest.mark.parametrize("method", METHODS)
def test_maps_of_a_batch_are_those_of_single_calls(module, batch, method):
    explainer = vit_demo.Explainer(module, labels=NAMES)
    options, is_specific = FEW.get(method, {}), METHODS[method].class_specific
    singles = [explainer(x) for x in batch]
    found = explainer.maps(batch, method, **options)
    np.testing.assert_allclose(found, np.stack([ex.heatmap(method, **options) for ex in singles]), atol=1e-5)
    if is_specific:
        targets = [2, NAMES[0], 1]
        expected = np.stack([ex.heatmap(method, t, **options) for ex, t in zip(singles, targets, strict=True)])
        np.testing.assert_allclose(explainer.maps(batch, method, targets, **options), expected, atol=1e-5)
        by_tensor = explainer.maps(batch, method, label=torch.tensor([2, 0, 1]), **options)
        np.testing.assert_allclose(by_tensor, expected, atol=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_maps_come_with_the_logits_of_the_same_pass(module, batch, method, monkeypatch):
    explainer, options = vit_demo.Explainer(module, labels=NAMES), FEW.get(method, {})
    with torch.no_grad():
        expected = module(batch)
    passes, forward = [0, 0], TracedViT.forward

    def counted(*arguments: object, **options: object) -> torch.Tensor:
        passes[-1] += 1
        return forward(*arguments, **options)

    monkeypatch.setattr(TracedViT, "forward", counted)
    values, logits = explainer.maps(batch, method, return_logits=True, **options)
    passes.append(0)
    torch.testing.assert_close(values, explainer.maps(batch, method, **options))
    torch.testing.assert_close(logits, expected, atol=1e-5, rtol=1e-5)
    assert passes[1] == passes[2], "no pass more"
    with pytest.raises(InputError, match="only one of both"):
        explainer.maps(batch, method, 1, label=2)


@pytest.mark.parametrize("method", ["relevance", "attnlrp", "libra_fullgrad", "integrated_gradients", "occlusion"])
def test_a_function_of_the_logits_is_explained(module, batch, method):
    explainer = vit_demo.Explainer(module, labels=NAMES)
    explainer_of_logits = vit_demo.Explainer(module, labels=NAMES, scores="none")
    difference = explainer.maps(batch, method, lambda logits: logits[:, 1] - logits[:, 2], **FEW.get(method, {}))
    expected = explainer_of_logits.maps(batch, method, 1, against=2, **FEW.get(method, {}))
    torch.testing.assert_close(difference, expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("method", [name for name, method in METHODS.items() if method.class_specific])
def test_without_classes_a_function_of_the_embedding_is_explained_and_nothing_else(batch, method):
    explainer = vit_demo.Explainer(timm_vit(num_classes=0)())
    shapes = set()

    def first(embedding):
        shapes.add(embedding.shape[1:])
        return embedding[:, 0]

    few = {"local_surrogate": {"budget": 12, "with_hint": False}}.get(method, FEW.get(method, {}))
    for targets in (None, 0, torch.tensor([0, 1, 2])):
        with pytest.raises(LabelError, match="no classes: pass label= as a function of its output"):
            explainer.maps(batch, method, targets, **few)
    assert explainer.maps(batch, method, first, **few).abs().amax((1, 2)).all()
    assert shapes == {(24,)}


@pytest.mark.parametrize("method", METHODS)
def test_an_input_whose_gradient_is_wanted_has_the_same_maps(module, batch, method):
    ex, few = vit_demo.Explainer(module, labels=NAMES)(batch[0]), FEW.get(method, {})
    expected = ex.heatmap(method, **few)
    ex.pixels.requires_grad_()
    np.testing.assert_array_equal(ex.heatmap(method, **few), expected)


def test_an_input_whose_gradient_is_wanted_has_the_same_everything_else(module, batch, tmp_path):
    explainer = vit_demo.Explainer(module, labels=NAMES)
    ex, wanted = explainer(batch[0]), explainer(batch[0])
    wanted.pixels.requires_grad_()
    for use in (
        lambda ex: ex.gradient(),
        lambda ex: ex.tokens(),
        lambda ex: ex.similarity((0, 0)),
        lambda ex: ex.faithfulness("relevance", steps=2, seeds=1).deletion,
        lambda ex: ex.drop_patches([(0, 0)]).logits,
        lambda ex: ex.randomization("relevance"),
        lambda ex: ex.save(tmp_path / "result") or vit_demo.load_result(tmp_path / "result", module).relevance(),
    ):
        np.testing.assert_array_equal(use(wanted), use(ex))
    assert wanted.pixels.requires_grad and wanted.pixels.grad is None


def test_options_of_maps_are_those_of_a_result(module, batch):
    explainer = vit_demo.Explainer(module)
    found = explainer.maps(batch, "attention", block=0, head=1, query=(1, 2))
    expected = [explainer(x).attention(0, 1, (1, 2)) for x in batch]
    np.testing.assert_allclose(found, np.stack(expected), atol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        (("nothing",), InputError, "no method"),
        (("relevance", 99), LabelError, "no class 99"),
        (("relevance", "zebra"), LabelError, "no class 'zebra'"),
        (("relevance", [0, 1]), InputError, "2 labels for 3 images"),
        (("relevance", lambda logits: logits[:, 0], 1), InputError, "compared with nothing"),
    ],
)
def test_a_bad_choice_is_named(module, batch, arguments, kind, words):
    with pytest.raises(kind, match=words):
        vit_demo.Explainer(module, labels=NAMES).maps(batch, *arguments)


class Column:
    """As a column of a table of pandas: an array, but no sequence."""

    def __init__(self, values):
        self.values, self.tolist = values, lambda: values

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values)


@pytest.mark.parametrize(
    "given", [0, [1, 2, 0], np.array([1, 2, 0]), np.int64(1), np.array(1), torch.tensor([1, 2, 0]), Column([1, 2, 0])]
)
def test_labels_may_be_an_array_and_say_nothing_to_some_methods(module, batch, given):
    explainer, alone = vit_demo.Explainer(module), np.broadcast_to(np.asarray(given), 3)
    found = explainer.maps(batch, "relevance", given)
    expected = [explainer.maps(batch[i : i + 1], "relevance", int(alone[i]))[0] for i in range(3)]
    torch.testing.assert_close(found, torch.stack(expected), atol=1e-6, rtol=1e-4)
    with pytest.warns(UserWarning, match="rollout does not depend on a class"):
        torch.testing.assert_close(explainer.maps(batch, "rollout", given), explainer.maps(batch, "rollout"))


@pytest.mark.parametrize("options", [{"block": 9}, {"head": 9}, {"query": (9, 0)}, {"query": 3}, {"blocks": 0}])
def test_a_place_that_is_not_there_is_named(module, batch, options):
    with pytest.raises(InputError):
        vit_demo.Explainer(module).maps(batch, "attention", **options)


SPARSE = torch.zeros(1, 3, 32, 32).to_sparse()


@pytest.mark.parametrize(
    "x", [torch.zeros(3, 32, 32), torch.zeros(1, 3, 32, 32, dtype=torch.uint8), [1.0], None, SPARSE, SPARSE.to("meta")]
)
def test_what_is_no_batch_is_refused(module, x):
    with pytest.raises(InputError, match=r"\[B, C, H, W\]"):
        vit_demo.Explainer(module).maps(x)


@pytest.mark.parametrize("model", ["photos-tiny", "network"])
def test_a_batch_gives_what_single_calls_give(model):
    if model == "network":
        torch.manual_seed(0)
        model = timm.create_model("vit_tiny_patch16_224", depth=2, num_classes=5)
    explainer = vit_demo.Explainer(model)
    wide = Image.effect_noise((300, 200), 90).convert("RGB")
    images = [*PHOTOS, wide]
    for image, ex in zip(images, explainer.batch(iter(images), batch_size=3), strict=True):
        single = vit_demo.explore(image, model)
        assert ex.grid == single.grid and ex.labels == single.labels and ex.seconds > 0
        np.testing.assert_allclose(ex.logits, single.logits, atol=1e-4)
        np.testing.assert_allclose(ex.rollout(), single.rollout(), atol=1e-6)
        np.testing.assert_allclose(ex.relevance(1), single.relevance(1), atol=1e-4)
        assert ex.image.tobytes() == single.image.tobytes()


def test_an_image_that_cannot_be_used_is_named_or_skipped(tmp_path):
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"not a picture")
    explainer = vit_demo.Explainer("photos-tiny")
    found = explainer.batch([PHOTOS[0], broken], batch_size=1)
    assert next(found).top(1)
    with pytest.raises(ImageError, match=r"broken\.png: This file cannot be read"):
        next(found)
    with pytest.raises(ImageError, match="Image 1: "):
        list(explainer.batch([PHOTOS[0], b"nothing"]))
    kept = list(explainer.batch([broken, PHOTOS[0], b"", PHOTOS[1]], on_error="skip"))
    assert [ex.top(1) for ex in kept] == [vit_demo.explore(path, "photos-tiny").top(1) for path in PHOTOS[:2]]
    told = []
    images = [broken, PHOTOS[0], b"", PHOTOS[1]]
    again = explainer.batch(images, on_error=lambda source, error: told.append((source, type(error))))
    assert [ex.top(1) for ex in again] == [ex.top(1) for ex in kept]
    assert told == [(str(broken), ImageError), (2, ImageError)]
    for options in ({"batch_size": 0}, {"on_error": "ignore"}):
        with pytest.raises(InputError):
            list(explainer.batch(PHOTOS, **options))


@pytest.mark.parametrize("model", ["photos-tiny", None])
def test_a_result_says_which_image_it_is_of(model, tmp_path):
    (broken := tmp_path / "broken.png").write_bytes(b"not a picture")
    picture = Image.open(PHOTOS[2])
    images = [broken, Path(PHOTOS[0]), b"", str(PHOTOS[1]), picture]
    found = list(vit_demo.explore_batch(images, model, on_error="skip"))
    assert [ex.source for ex in found] == [str(PHOTOS[0]), str(PHOTOS[1]), 4]
    for ex, path in zip(found, PHOTOS, strict=True):
        single = vit_demo.explore(path, model)
        np.testing.assert_allclose(ex.logits, single.logits, atol=1e-4)
        assert single.source == str(path) == vit_demo.Explainer("photos-tiny")(path).source
    assert vit_demo.explore(picture, model).source is None
    assert [row["picture"] for row in vit_demo.table(found)] == [ex.source for ex in found]
    vit_demo.report(found[1:], page := tmp_path / "report.html", ["rollout"])
    assert str(PHOTOS[1]) in page.read_text("utf-8") and "Picture 2" in page.read_text("utf-8")
    first = found[0].drop_patches([(0, 0)])
    first.save(tmp_path / "result")
    assert vit_demo.load_result(tmp_path / "result").source == first.to_dict()["source"] == str(PHOTOS[0])
    with pytest.raises(ImageError, match=r"broken\.png: This file cannot be read"):
        list(vit_demo.explore_batch([PHOTOS[0], broken], model))


@pytest.mark.parametrize("images", ["photos", b"photo", Path("photos"), Image.new("RGB", (32, 32))])
@pytest.mark.parametrize("model", ["photos-tiny", None])
def test_one_image_or_a_folder_is_no_list_of_images(images, model):
    for batch in (vit_demo.explore_batch(images, model), vit_demo.Explainer("photos-tiny").batch(images)):
        with pytest.raises(
            InputError, match=r'a list, such as sorted\(Path\("folder"\)\.iterdir\(\)\), not one \w+\.$'
        ):
            list(batch)


def test_only_images_are_skipped_and_no_mistake_of_the_caller(module, batch):
    few_labels = vit_demo.Explainer(timm_vit(img_size=224)(), labels=["a"])
    for found in (
        few_labels.batch(PHOTOS, on_error="skip"),
        vit_demo.Explainer(module).batch(PHOTOS, on_error="skip"),
        vit_demo.explore_batch(PHOTOS, device="foo", on_error="skip"),
        vit_demo.explore_batch(PHOTOS, on_error="ignore"),
    ):
        with pytest.raises(InputError):
            next(found)
    inputs = [batch[0] * torch.nan, batch[1], batch[2, :, 1:]]
    assert [ex.source for ex in vit_demo.Explainer(module).batch(inputs, on_error="skip")] == [1]


def test_everything_runs_in_the_callers_thread(monkeypatch):
    started, caller, start = [], threading.current_thread(), threading.Thread.start

    def note(thread):
        if threading.current_thread() is caller:
            started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", note)
    monkeypatch.setattr("vit_demo.images.reading.subprocess", None)  # no process is started
    ex = vit_demo.explore(PHOTOS[0], "photos-tiny")
    for method in ("rollout", "relevance", "occlusion"):
        assert ex.heatmap(method).shape == ex.grid
    assert not started


def test_four_threads_share_one_network(module, batch):
    explainer = vit_demo.Explainer(module, labels=NAMES)
    expected = [explainer(x).relevance() for x in batch]

    def relevance(index: int) -> np.ndarray:
        return vit_demo.explore(batch[index % 3], module, labels=NAMES).relevance()

    with ThreadPoolExecutor(4) as threads:
        for index, values in enumerate(threads.map(relevance, range(24))):
            np.testing.assert_allclose(values, expected[index % 3], atol=1e-6)
