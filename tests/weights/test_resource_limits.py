"""Models that would take too much time or memory are refused at once."""

import json
import resource

import pytest
import timm
import torch
from safetensors.torch import save
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

import vit_demo
from vit_demo.errors import PresetError
from vit_demo.trace import OwnViT, Trace, adapt
from vit_demo.weights import costs, find_preset, limits

from .model_folder import WEIGHTS_FILE, assert_refused, set_field, timm_files, write_files


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ({"image_size": 124, "patch_size": 2}, "62 x 62 patches: choose one with at most 60"),
        ({"image_size": 61, "patch_size": 1}, "61 x 61 patches"),
        ({"image_size": 128, "patch_size": 64}, "patches have 64 px"),
    ],
)
def test_networks_that_would_keep_a_page_busy_are_refused_to_visitors(hub, tmp_path, shape, message):
    hub.repositories["someone/large"] = files = timm_files(**shape)
    with pytest.raises(PresetError, match=message):
        find_preset("someone/large", trusted=False)
    if shape["image_size"] == 128:
        assert find_preset(str(write_files(tmp_path, files))).config.depth  # the operator may load it


@pytest.mark.parametrize("limit", ["MAX_OPERATIONS", "MAX_TRACE_BYTES", "MAX_PARAMETERS"])
def test_each_cost_of_a_network_is_bounded_for_visitors(hub, published, monkeypatch, limit):
    hub.repositories["someone/cats"] = published.files
    monkeypatch.setattr(limits, limit, 10_000)
    with pytest.raises(PresetError, match="too much time or memory"):
        find_preset("someone/cats", trusted=False)


def test_patch_sizes_that_a_page_cannot_afford_are_not_offered(hub, tmp_path):
    hub.repositories["someone/coarse"] = timm_files(image_size=96, patch_size=32)
    assert find_preset("someone/coarse").patch_sizes == (16, 24, 32, 48, 96)
    assert find_preset("someone/coarse", trusted=False).patch_sizes == (16, 24, 32, 48)


@pytest.mark.parametrize(
    ("shape", "cheap", "expensive"),
    [
        ({"embed_dim": 768, "num_heads": 12}, 8, 2),  # ViT-B
        ({"embed_dim": 1024, "num_heads": 16, "depth": 24}, 8, 4),  # ViT-L
        ({"embed_dim": 1024, "num_heads": 16, "depth": 24, "image_size": 518, "patch_size": 14}, 14, 7),  # DINOv2-L
        ({"embed_dim": 1280, "num_heads": 16, "depth": 32, "patch_size": 14}, 14, 7),  # ViT-H
    ],
)
def test_public_networks_are_affordable_where_they_are_native(shape, cheap, expensive):
    config = vit_demo.model.ViTConfig(**shape)
    limits.check_network(config)
    assert limits.is_affordable(config, cheap) and not limits.is_affordable(config, expensive)


@pytest.mark.parametrize("projection", ["fused", "per_head"])
@pytest.mark.parametrize("patch_size", [4, 8])
def test_estimates_are_those_of_the_network(patch_size, projection):
    shape = {"image_size": 32, "patch_size": 8, "embed_dim": 64, "depth": 3, "num_heads": 4, "mlp_ratio": 3.0}
    config = vit_demo.model.ViTConfig(**shape, projection=projection)
    model, pixels = OwnViT(vit_demo.model.ViT(config).eval()), torch.zeros(1, 3, 32, 32)
    trace = Trace(record_tokens=True)
    # Written out, because the counter does not know every fused kernel of attention.
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter, torch.no_grad():
        model(pixels, patch_size=patch_size)
    operations = costs.num_operations(config, patch_size, costs.num_tokens(config, patch_size))
    assert 0.95 < 2 * operations / counter.get_total_flops() <= 1
    model(pixels, trace, patch_size=patch_size)
    kept = (*trace.q, *trace.k, *trace.v, *trace.tokens[1:])
    assert costs.trace_bytes(config, patch_size) == sum(tensor.nbytes for tensor in kept)


def test_many_heads_of_few_channels_count_what_their_scores_take():
    """They took a minute of two cores, at a seventh of the multiplications that are allowed."""
    shape = {"image_size": 60, "patch_size": 1, "embed_dim": 64, "depth": 64, "num_classes": 2}
    few, many = (vit_demo.model.ViTConfig(**shape, num_heads=heads) for heads in (1, 64))
    multiplications = [costs.num_operations(config, 1, costs.num_tokens(config, 1)) for config in (few, many)]
    assert multiplications[0] == multiplications[1] < limits.MAX_OPERATIONS
    assert limits.is_affordable(few, 1)
    with pytest.raises(PresetError, match="too much time or memory"):
        limits.check_for_visitors(many, 10)


def test_the_largest_patches_and_networks_are_still_allowed(monkeypatch):
    config = vit_demo.model.ViTConfig(image_size=96, patch_size=limits.MAX_VISITOR_PATCH, embed_dim=64, num_heads=4)
    monkeypatch.setattr(limits, "MAX_OPERATIONS", costs.forward(config, config.patch_size).operations)
    monkeypatch.setattr(limits, "MAX_TRACE_BYTES", costs.trace_bytes(config, config.patch_size))
    limits.check_for_visitors(config, limits.MAX_PARAMETERS)
    with pytest.raises(PresetError, match="too much time or memory"):
        limits.check_for_visitors(config, limits.MAX_PARAMETERS + 1)
    with pytest.raises(PresetError, match="pixels along a side"):
        limits.check_network(vit_demo.model.ViTConfig(pos_embed_grid=limits.MAX_IMAGE_SIZE // 16 + 1))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"depth": 5000}, "depth .* must be a whole number from 1 to 64"),
        ({"depth": 64, "embed_dim": 4096, "num_heads": 64, "mlp_ratio": 16.0}, "more than 5 GB"),
        ({"depth": 1, "img_size": 4096, "patch_size": 4}, "1,024 patches along a side"),
        ({"depth": 1, "img_size": 4096, "patch_size": 1, "embed_dim": 4096, "num_heads": 64}, "more than 5 GB"),
    ],
)
def test_networks_beyond_every_public_one_are_refused_before_they_take_memory(timm_folder, arguments, message):
    set_field(timm_folder / "config.json", "model_args", value={"depth": 1, "img_size": 4096, "patch_size": 128})
    assert_refused(timm_folder)  # by its weights, after the imports and the largest picture, which are no network
    set_field(timm_folder / "config.json", "model_args", value=arguments)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert_refused(timm_folder, message)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kB


def test_large_weights_in_a_folder_are_refused_unread(timm_folder, monkeypatch):
    monkeypatch.setattr(limits, "MAX_WEIGHTS_BYTES", 1000)
    assert_refused(timm_folder, "choose a smaller model")


def test_relative_positions_count_for_all_pairs_of_tokens(hub):
    """They are kept with the queries and keys: 236 MB a block where plain attention keeps 1.2."""
    shape = {"img_size": 448, "patch_size": 8, "embed_dim": 24, "depth": 3, "num_heads": 3}
    model = timm.create_model("beit_base_patch16_224", num_classes=2, **shape)
    config = {"architecture": "beit_base_patch16_224", "num_classes": 2, "model_args": shape}
    hub.repositories["someone/pairs"] = {
        "config.json": json.dumps(config).encode(),
        WEIGHTS_FILE: save(model.state_dict()),
    }
    with pytest.raises(PresetError, match="too much time or memory"):
        find_preset("someone/pairs", trusted=False)
    assert hub.gets(WEIGHTS_FILE) == 0


def test_what_a_mask_adds_is_what_is_recorded_of_it():
    model = timm.create_model("beit_base_patch16_224", img_size=64, patch_size=16, embed_dim=24, depth=2, num_heads=3)
    network, recording = adapt(model.eval(), 64), Trace()
    with torch.no_grad():
        network(torch.zeros(1, 3, 64, 64), recording)
    added = sum(x.shape[2] * (x.shape[3] - 8) * 3 * 4 for x in (*recording.q, *recording.k))
    assert costs.mask_bytes(network.config, 16) == added
