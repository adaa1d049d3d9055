"""``explore`` of a network in memory: whose picture, class and model it is, and what is refused."""

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

import vit_demo
from vit_demo.errors import InputError, LabelError, PresetError
from vit_demo.trace import adapt
from vit_demo.web.catalog.example_photos import EXAMPLE_PHOTOS
from vit_demo.weights.hub.preprocessing import preprocessing_of

from ..trace.networks import NETWORKS, own, timm_vit, torchvision_network

CAT = EXAMPLE_PHOTOS["cat"].path
NAMES = ("ant", "bee", "cat", "dog", "eel")


@pytest.fixture(scope="module")
def pixels() -> torch.Tensor:
    return torch.randn(3, 32, 32, generator=torch.Generator().manual_seed(0))


def test_a_tensor_is_the_input_as_it_is(pixels):
    module = own()
    ex = vit_demo.explore(pixels, module, labels=NAMES)
    with torch.no_grad():
        expected = module(pixels[None])[0]
    np.testing.assert_allclose(ex.logits, expected, atol=1e-6)
    assert ex.grid == (4, 4) and ex.patch_size == 8 and ex.top(1)[0][0] == NAMES[int(expected.argmax())]
    np.testing.assert_array_equal(ex.relevance("dog"), ex.relevance(3))
    assert not np.array_equal(ex.relevance("dog"), ex.relevance("eel"))
    with torch.no_grad():
        less = adapt(module, 32)(pixels[None], kept_patches=torch.arange(2, 16)[None])[0]
    np.testing.assert_allclose(ex.drop_patches([(0, 0), (0, 1)]).logits, less, atol=1e-6)


def test_many_images_are_read_when_their_turn_comes(pixels):
    module, seen = own(), []

    def pictures():
        for each in (pixels, -pixels, pixels / 2):
            seen.append(each)
            yield each

    found = vit_demo.explore_batch(pictures(), module, labels=NAMES, batch_size=2)
    assert not seen
    for number, image in enumerate((pixels, -pixels, pixels / 2)):
        ex = next(found)
        assert len(seen) == (2 if number < 2 else 3) and ex.labels == NAMES
        np.testing.assert_allclose(ex.logits, vit_demo.explore(image, module).logits, atol=1e-5)
    assert next(found, None) is None


def test_a_network_in_memory_has_one_patch_size(pixels):
    preset = vit_demo.explore(pixels, own()).preset
    assert preset.patch_sizes == (8,) and not preset.flexible and preset.is_resampled(16)


def test_weights_that_change_give_another_result(pixels):
    module = own()
    before = vit_demo.explore(pixels, module)
    tokens = before.similarity((0, 0))
    module.head.weight.data.neg_()
    module.layers[0].out.weight.data.mul_(3)
    after = vit_demo.explore(pixels, module)
    assert not np.allclose(before.logits, after.logits) and not np.allclose(tokens, after.similarity((0, 0)))


def test_a_photo_is_prepared_as_timm_says():
    timm = pytest.importorskip("timm")
    torch.manual_seed(0)
    module = timm.create_model("vit_tiny_patch16_224", depth=1, num_classes=1000).eval()
    ex = vit_demo.explore(CAT, module)
    config = timm.data.resolve_model_data_config(module)
    transform = timm.data.create_transform(**config)
    expected = transform(vit_demo.images.read_image(CAT))
    assert (ex.pixels[0] - expected).abs().mean() < 0.02, "two libraries resize a little differently"
    assert ex.labels == vit_demo.presets()["vit-b16"].labels and ex.grid == (14, 14)
    own_transform = vit_demo.explore(CAT, module, transform=transform)
    assert torch.equal(own_transform.pixels[0], expected)
    with torch.no_grad():
        np.testing.assert_allclose(own_transform.logits, module(expected[None])[0], atol=1e-5)


def test_torchvision_prepares_photos_as_its_weights_say():
    torchvision = pytest.importorskip("torchvision")
    expected, found = torchvision.models.ViT_B_16_Weights.DEFAULT.transforms(), preprocessing_of(torchvision_network())
    assert found.image_size == 32 and found.crop_fraction == expected.crop_size[0] / expected.resize_size[0]
    assert found.interpolation == expected.interpolation.value
    assert (found.mean, found.std) == (tuple(expected.mean), tuple(expected.std))


def test_a_network_of_any_size_may_keep_the_shape_of_a_picture():
    module = timm_vit(dynamic_img_size=True)()
    module.image_size = 32
    picture = Image.fromarray(np.random.default_rng(0).integers(0, 256, (60, 40, 3), np.uint8))
    ex = vit_demo.explore(picture, module, fit="keep")
    assert ex.grid == ex.relevance().shape and ex.grid[0] != ex.grid[1]
    with torch.no_grad():
        np.testing.assert_allclose(ex.logits, module(ex.pixels)[0], atol=1e-6)


@pytest.mark.parametrize("name", ["timm beit", "timm siglip", "transformers Dinov2", "vit-pytorch simple"])
def test_everything_of_a_result_works(name, pixels):
    ex = vit_demo.explore(pixels, NETWORKS[name]())
    for method in vit_demo.methods.METHODS.values():
        options = {"budget": 8} if method.name == "local_surrogate" else {}
        if method.name == "legrad" and "simple" in name:
            with pytest.raises(vit_demo.InputError, match="its blocks are not modules"):
                ex.heatmap("legrad")
            continue
        assert ex.heatmap(method.name, **options).shape == (4, 4), method.name
    assert ex.attention_maps().shape == (3, 3, 4, 4) and ex.attention_maps((1, 2)).shape == (3, 3, 4, 4)
    assert len(ex.randomization("rollout")) == 5
    assert ex.faithfulness("relevance", steps=2, seeds=1).deletion_area > 0
    assert ex.overlay(ex.rollout()).size == (448, 448)
    assert "<iframe" in ex._repr_html_() and type(pixels) is torch.Tensor
    if "simple" not in name:
        assert len(ex.logit_lens()) == 4 and len(ex.logit_lens(patches=True)) == 4
        assert ex.pca().shape == (4, 4, 3) and ex.norms().shape == (4, 4)


def test_without_a_class_token_the_last_block_is_read_by_the_query_of_attention_pooling(pixels):
    module = NETWORKS["timm siglip"]()
    ex, pool = vit_demo.explore(pixels, module), module.attn_pool
    with torch.no_grad():
        tokens = module.forward_features(pixels[None])[0]  # [N, D]
        q = pool.q_norm(pool.q(pool.latent[0]).unflatten(1, (pool.num_heads, -1)).transpose(0, 1))  # [H, 1, d]
        k = pool.k_norm(pool.kv(tokens).unflatten(1, (2, pool.num_heads, -1))[:, 0].transpose(0, 1))  # [H, N, d]
        shares = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)[:, 0].numpy()  # [H, N]
    for head in range(pool.num_heads):
        np.testing.assert_allclose(ex.attention(head=head).ravel(), shares[head], atol=1e-6)
    np.testing.assert_allclose(ex.attention_maps()[-1].reshape(shares.shape), shares, atol=1e-6)
    matrices = [[ex.attention(block, query=divmod(i, 4)).ravel() for i in range(16)] for block in range(3)]
    np.testing.assert_allclose(ex.attention(1).ravel(), np.mean(matrices[1], 0), atol=1e-6)
    row = shares.mean(0)
    for matrix in reversed(matrices):
        row = (row + row @ np.array(matrix)) / 2
    np.testing.assert_allclose(ex.rollout().ravel(), row, atol=1e-6)


def test_what_does_not_fit_gets_a_sentence(pixels):
    module, sized = own(), own()
    sized.image_size = 32
    for call, kind, words in (
        (lambda: vit_demo.explore(pixels, module, labels=["a"]), LabelError, "has 5 classes"),
        (lambda: vit_demo.explore(pixels[0], module), InputError, "a tensor .C, H, W."),
        (lambda: vit_demo.explore(pixels * torch.nan, module), InputError, "every number finite"),
        (lambda: vit_demo.explore(pixels.byte(), module), InputError, "normalised"),
        (lambda: vit_demo.explore(CAT, module), PresetError, "does not take images of 3 x 224 x 224 .* image_size .*="),
        (lambda: vit_demo.explore(CAT, sized, fit="keep"), PresetError, r"square.*dynamic_img_size=True if .* timm"),
        (lambda: vit_demo.explore(CAT, nn.Linear(3, 3)), PresetError, "does not take images"),
        (lambda: vit_demo.explore(pixels, "photos-tiny"), InputError, "networks in memory"),
        (lambda: vit_demo.explore(CAT, "photos-tiny", labels=NAMES), LabelError, "knows 50 classes"),
        (lambda: vit_demo.explore(CAT, "photos-tiny", transform=list), InputError, "networks in memory"),
        (lambda: vit_demo.explore(pixels, module, patch_size="x"), InputError, "whole number"),
    ):
        with pytest.raises(kind, match=words):
            call()
    assert vit_demo.explore(CAT, sized).grid == (4, 4), "as the first error says"


def test_a_rectangle_is_taken_by_a_network_that_takes_it(pixels):
    wide = torch.cat([pixels, pixels[:, :, :16]], 2)
    for module in (timm_vit(img_size=(32, 48))(), timm_vit(dynamic_img_size=True)()):
        with torch.no_grad():
            expected = module(wide[None])[0]
        for image, options in ((wide, {}), (wide[None], {}), (CAT, {"transform": lambda _: wide})):
            ex = vit_demo.explore(image, module, **options)
            np.testing.assert_allclose(ex.logits, expected, atol=1e-6)
            assert ex.grid == (4, 6) == ex.relevance().shape and ex.overlay(ex.rollout()).size == (448, 298)
        assert ex.drop_patches([(3, 5)]).logits.shape == (5,)
    with pytest.raises(PresetError, match="does not take images of 3 x 32 x 48"):
        vit_demo.explore(wide, timm_vit()())
