"""What a program sets in torch changes no result: default dtype, default device, autocast, inference mode."""

import copy
import dataclasses
import pickle
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import timm
import torch

import vit_demo
from vit_demo import methods, metrics
from vit_demo.errors import InputError
from vit_demo.inference.exploration import Exploration
from vit_demo.methods import METHODS
from vit_demo.model import ViT
from vit_demo.service.engine import _engines
from vit_demo.trace import OwnViT, Trace, TracedViT
from vit_demo.web.catalog.example_digits import example_picture
from vit_demo.weights.hub.preprocessing import preprocessing_of

CLASS_METHODS = [name for name, method in METHODS.items() if method.class_specific]


@pytest.fixture(scope="module")
def three() -> Iterator[Exploration]:
    yield vit_demo.explore(example_picture(3), "digits-tiny", patch_size=7)
    _engines.clear()


@pytest.fixture(scope="module")
def expected(three: Exploration) -> dict[str, np.ndarray]:
    return {name: three.heatmap(name) for name in METHODS}


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_the_default_dtype(three: Exploration, expected: dict[str, np.ndarray], dtype: torch.dtype) -> None:
    curves = three.faithfulness("attention")
    torch.set_default_dtype(dtype)
    try:
        for name, values in expected.items():
            assert three.heatmap(name).dtype == np.float32
            np.testing.assert_array_equal(three.heatmap(name), values)
        np.testing.assert_array_equal(three.faithfulness("attention").deletion, curves.deletion)
        assert vit_demo.explore(example_picture(4), "digits-tiny", patch_size=7).top(1)[0][0] == "4"
    finally:
        torch.set_default_dtype(torch.float32)


def test_the_default_device(three: Exploration) -> None:
    dropped = three.drop_patches([(0, 0)])
    with torch.device("meta"):
        assert three.top(1)[0][0] == "3" and three.is_confident and "3" in repr(three)
        assert dropped.heatmap("attention").shape == (4, 4)


@pytest.mark.parametrize("name", CLASS_METHODS)
def test_a_network_loaded_in_inference_mode(three: Exploration, expected: dict[str, np.ndarray], name: str) -> None:
    with torch.inference_mode():
        model = OwnViT(vit_demo.load("digits-tiny", patch_size=7))
    values = METHODS[name].compute(model, three.pixels, 3)
    np.testing.assert_allclose(values[0].numpy(), expected[name], atol=1e-4)


def test_one_pass_with_autocast_leaves_full_precision() -> None:
    images = torch.rand(1, 1, 28, 28)
    used, unused = (vit_demo.load("digits-tiny") for _ in range(2))
    with torch.inference_mode():
        with torch.autocast("cpu", torch.bfloat16):
            used(images, patch_size=7)
        assert torch.equal(used(images, patch_size=7), unused(images, patch_size=7))


def test_one_pass_on_the_meta_device_leaves_resampling_as_it_was() -> None:
    """13 is a size that no other test resamples to, so that nothing is cached."""
    model = vit_demo.load("digits-tiny")
    with torch.device("meta"):
        assert ViT(model.config)(torch.empty(1, 1, 26, 26), patch_size=13).shape == (1, 10)
    with torch.inference_mode():
        assert model(torch.rand(1, 1, 26, 26), patch_size=13).isfinite().all()


@pytest.mark.parametrize("tokens", [17, 325], ids=["whole matrices", "chunks"])
def test_maps_of_a_pass_with_gradients(network: Callable[..., TracedViT], tokens: int) -> None:
    side = 4 * round((tokens - 1) ** 0.5)
    model, trace = network(image_size=side).requires_grad_(True), Trace()
    model(torch.randn(1, 3, side, side), trace)
    free = Trace()
    with torch.inference_mode():
        model(torch.zeros(1, 3, side, side), free)
    for values in (
        methods.rollout(trace),
        methods.rollout(trace, None),
        methods.attention_from(trace, 0, None),
        methods.attention_to(trace, 0, 0),
    ):
        assert not values.requires_grad and values.isfinite().all()


@pytest.mark.parametrize("name", ["mean", "blur", "black"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_baseline_has_the_dtype_of_the_images(three: Exploration, name: str, dtype: torch.dtype) -> None:
    model, pixels = OwnViT(vit_demo.load("digits-tiny", patch_size=7)).to(dtype), three.pixels.to(dtype)
    baseline = metrics.baseline_image(name, pixels, 7, three.preset.mean, three.preset.std)
    assert baseline.dtype == dtype
    assert metrics.faithfulness(model, pixels, 3, torch.rand(4, 4), baseline, patch_size=7).deletion[0] > 0.9


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_a_result_can_be_copied_and_sent_to_another_process(three: Exploration, copied: Callable) -> None:
    other = copied(three)
    assert other is not three and other.top(1) == three.top(1)
    np.testing.assert_array_equal(other.heatmap("relevance"), three.heatmap("relevance"))
    assert dataclasses.asdict(three)["patch_size"] == 7


def test_a_query_counts_from_the_end_and_an_unknown_direction_is_refused(trace_of: Callable[..., Trace]) -> None:
    trace = trace_of()
    with pytest.raises(InputError, match="direction"):
        METHODS["attention"].function(trace, direction="x")
    for name in ("rollout", "attention"):
        method = METHODS[name].function
        assert torch.equal(method(trace, query=-1), method(trace, query=16))


def test_methods_of_many_passes_explain_the_most_probable_class(three: Exploration) -> None:
    model = OwnViT(vit_demo.load("digits-tiny", patch_size=7))
    occlusion = METHODS["occlusion"]
    assert torch.equal(occlusion.compute(model, three.pixels), occlusion.compute(model, three.pixels, 3))


def test_a_default_device_does_not_hide_how_photos_are_prepared() -> None:
    network = timm.create_model("vit_tiny_patch16_384")
    with torch.device("meta"):
        known = preprocessing_of(network)
    assert known.is_known and (known.image_size, known.mean) == (384, (0.5, 0.5, 0.5))
