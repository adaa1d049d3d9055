"""A pretrained teacher's outputs are computed once, for the right classes and crops."""

import csv
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from PIL import Image
from safetensors.torch import load_file, save_file

from vit_demo.errors import InputError
from vit_demo.model import ViT, ViTConfig
from vit_demo.model.config import VIT_TINY
from vit_demo.training import teacher_outputs
from vit_demo.training.augment import MixUpOrCutMix, crop_and_resize
from vit_demo.training.data import OUTLIER, UNLABELLED, ImageDataset
from vit_demo.training.student import resample_patch_features
from vit_demo.training.teacher_outputs import TEACHER_SIDE, TENSORS, compute_teacher_outputs, restrict_to_classes
from vit_demo.training.teachers import PRETRAINED_VIT, load_pretrained_teacher

CPU = torch.device("cpu")
SMALL = ViTConfig(
    image_size=TEACHER_SIDE, patch_size=40, pos_embed_grid=4, num_classes=4, embed_dim=16, depth=1, num_heads=2
)


def random_teacher(**fields) -> ViT:
    """A small network whose outputs differ from photo to photo."""
    model = ViT(replace(SMALL, **fields)).eval().requires_grad_(False)
    for parameter in model.parameters():
        parameter.normal_(std=0.3)
    return model


@pytest.fixture
def teacher() -> ViT:
    return random_teacher()


def random_photos(count: int = 24) -> ImageDataset:
    images = torch.randint(0, 256, (count, 3, 12, 12), dtype=torch.uint8)
    return ImageDataset(images, torch.arange(count) % 4, tuple("abcd"))


@pytest.fixture
def data() -> ImageDataset:
    return random_photos()


def test_outputs_are_those_for_the_crops_that_the_student_gets(teacher, data, tmp_path, monkeypatch):
    monkeypatch.setattr(teacher_outputs, "jitter_crops", lambda crops: crops)
    outputs = compute_teacher_outputs(teacher, [data], 2, 0, tmp_path, CPU, batch_size=5)
    assert [x.shape for x in outputs.probabilities] == [(24, 4)] * 2
    assert [x.shape for x in outputs.features] == [(24, 16)] * 2
    assert not torch.equal(outputs.crops[0], outputs.crops[1])
    batch = torch.tensor([7] * 20)
    crops, probabilities, features, patches = outputs.sample(3, batch)  # epoch 3 uses the second view
    flipped = crops[:, 0] < 0
    assert 0 < flipped.sum() < 20
    assert torch.equal(crops.abs() * outputs.crops[1][batch].sign(), outputs.crops[1][batch])
    assert all(torch.equal(row, features[0]) for row in features) and features.shape == (20, 16)
    assert all(torch.equal(row, probabilities[0]) for row in probabilities)
    # The patch features of a flipped photo are flipped as well.
    assert all(torch.equal(patches[i], patches[~flipped][0].flip(2 if f else ())) for i, f in enumerate(flipped))
    photo = crop_and_resize(data.images[7:8].float() / 255, outputs.crops[1][7:8])[0].permute(1, 2, 0)
    size = (TEACHER_SIDE, TEACHER_SIDE)
    large = [Image.fromarray(photo[:, :, c].numpy()).resize(size, Image.Resampling.BICUBIC) for c in range(3)]
    x = torch.from_numpy(np.stack([np.asarray(channel) for channel in large]))[None].clamp(0, 1) * 2 - 1
    assert torch.allclose(teacher(x).softmax(1), probabilities[:1], atol=0.02)  # computed in bfloat16
    found = [outputs.standardised(name, 0, torch.arange(24)) for name in ("features", "patches")]
    for values in (found[0], found[1].permute(0, 2, 3, 1).flatten(0, 2)):
        assert values.mean(0).abs().max() < 1e-2 and (values.std(0) - 1).abs().max() < 1e-2


def test_crops_are_jittered_anew_each_time(teacher, data, tmp_path):
    outputs = compute_teacher_outputs(teacher, [data], 1, 0, tmp_path, CPU)
    first, second = (outputs.sample(0, torch.arange(24)).crops for _ in range(2))
    for crops in (first, second):
        ratio = crops[:, :2].abs() / outputs.crops[0][:, :2]
        assert ratio.min() > 0.89 and ratio.max() < 1.11 and not torch.equal(ratio, torch.ones_like(ratio))
    assert not torch.equal(first.abs(), second.abs())


def test_patch_features_are_the_input_of_the_last_block_averaged_over_two_by_two_patches(data, tmp_path):
    teacher = random_teacher(depth=2)
    inputs: list[torch.Tensor] = []
    teacher.blocks[1].attn.register_forward_pre_hook(lambda module, args: inputs.append(args[0].float()))
    outputs = compute_teacher_outputs(teacher, [data], 1, 0, tmp_path, CPU)
    tokens = torch.cat(inputs)[:, 1:]  # [24, 4 * 4, 16]
    corner = tokens[:, [10, 11, 14, 15]].mean(1)  # the last two rows and columns
    deviation, mean = torch.std_mean(tokens.unflatten(1, (2, 2, 2, 2)).mean((2, 4)), dim=(0, 1, 2))
    assert torch.allclose(
        outputs.standardised("patches", 0, torch.arange(24))[:, :, 1, 1], (corner - mean) / deviation, atol=0.02
    )


def same_outputs(a, b) -> bool:
    return all(map(torch.equal, *([x for name in TENSORS for x in getattr(each, name)] for each in (a, b))))


def test_stored_outputs_are_not_computed_again(teacher, data, tmp_path, monkeypatch):
    compute_teacher_outputs(teacher, [data], 1, 0, tmp_path, CPU)
    (stored,) = tmp_path.glob("*.safetensors")
    save_file({"crops": torch.zeros(24, 4)}, stored)  # an incomplete file is replaced
    first = compute_teacher_outputs(teacher, [data], 1, 0, tmp_path, CPU)
    monkeypatch.setattr(teacher_outputs, "_run_teacher", lambda *_: pytest.fail("computed again"))
    assert same_outputs(first, compute_teacher_outputs(teacher, [data], 1, 0, tmp_path, CPU))


@pytest.mark.parametrize("change", ["images", "labels", "aspect_ratios"])
def test_outputs_for_other_photos_are_computed_anew(change, teacher, data, tmp_path):
    data = replace(data, aspect_ratios=torch.ones(24))
    compute_teacher_outputs(teacher, [data], 1, 0, tmp_path / "stored", CPU)
    other = {
        "images": data.images.flip(0),
        "labels": torch.full((24,), UNLABELLED),
        "aspect_ratios": torch.full((24,), 2.0),
    }
    data = replace(data, **{change: other[change]})
    stored, fresh = (
        compute_teacher_outputs(teacher, [data], 1, 0, tmp_path / name, CPU) for name in ("stored", "fresh")
    )
    assert same_outputs(stored, fresh)


def test_a_change_of_the_second_dataset_leaves_the_outputs_for_the_first_stored(teacher, data, tmp_path, monkeypatch):
    second, other = random_photos(10), random_photos(8)
    both = compute_teacher_outputs(teacher, [data, second], 2, 0, tmp_path, CPU)
    assert [x.shape for x in both.probabilities] == [(34, 4)] * 2
    run, computed = teacher_outputs._run_teacher, []
    monkeypatch.setattr(
        teacher_outputs, "_run_teacher", lambda model, part, *rest: (computed.append(part), run(model, part, *rest))[1]
    )
    changed = compute_teacher_outputs(teacher, [data, other], 2, 0, tmp_path, CPU)
    assert len(computed) == 2 and all(part is other for part in computed), "two views of the new photos"
    for name in TENSORS:
        assert all(
            torch.equal(a[:24], b[:24]) for a, b in zip(getattr(changed, name), getattr(both, name), strict=True)
        )
    alone = load_file(tmp_path / f"{other.digest}-0-1.safetensors")
    assert torch.equal(changed.probabilities[1][24:], alone["probabilities"])


def test_the_probability_of_other_classes_is_spread_evenly():
    probabilities = torch.tensor([0.15, 0.05, 0.7, 0.1]).repeat(4, 1)
    probabilities[3] = torch.tensor([0.6, 0.3, 0.1, 0.0])
    labels = torch.tensor([1, OUTLIER, UNLABELLED, UNLABELLED])
    found = restrict_to_classes((probabilities + 1e-12).log(), labels, 2)
    expected = [[0.75, 0.25], [0.5, 0.5], [0.4 * 0.75 + 0.6 / 2, 0.4 * 0.25 + 0.6 / 2], [2 / 3, 1 / 3]]
    assert torch.allclose(found, torch.tensor(expected), atol=1e-5)


def test_the_teacher_s_first_classes_are_those_of_the_photo_sets_in_their_order(photos):
    model = ViT(VIT_TINY.with_classes(1000))
    np.savez(photos / PRETRAINED_VIT, **{name: tensor.numpy() for name, tensor in model.state_dict().items()})
    with (photos / "classes.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerows([["wnid", "class_index"], ["n3", 7], ["n2", 5], ["n1", 900]])
    teacher = load_pretrained_teacher(photos)
    assert torch.equal(teacher.head.weight[:4], model.head.weight[[900, 5, 900, 5]])
    assert torch.equal(teacher.head.weight[4:], model.head.weight[[7]]), "followed by all other classes"
    (photos / PRETRAINED_VIT).unlink()
    with pytest.raises(InputError, match=PRETRAINED_VIT):
        load_pretrained_teacher(photos)


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_patch_targets_are_mixed_as_the_patches_are(p):
    images, maps = torch.rand(5, 3, 12, 12), torch.randn(5, 7, 2, 2)
    keep = torch.stack([torch.randperm(16)[:6] for _ in range(5)])
    for _ in range(8):  # sometimes MixUp, sometimes CutMix
        mixed, targets, weights = MixUpOrCutMix(p)(images, torch.eye(5))
        found = resample_patch_features(maps, weights, 3, keep)
        assert found.shape == (5, 6, 7)
        large = F.interpolate(maps, (4, 4), mode="bilinear").flatten(2)
        for i in range(5):
            assert torch.allclose(mixed[i], images[i] + weights[0] * (images[i - 1] - images[i]), atol=1e-6)
            assert torch.isclose(targets[i, i - 1], weights.mean(), atol=1e-5)
            for j, patch in enumerate(keep[i].tolist()):
                row, col = divmod(patch, 4)
                w = weights[0, 3 * row : 3 * row + 3, 3 * col : 3 * col + 3].mean()
                own, previous = large[i, :, patch], large[i - 1, :, patch]
                assert torch.allclose(found[i, j], own * (1 - w) + previous * w, atol=1e-5)
    assert torch.equal(resample_patch_features(maps, torch.zeros(1, 12, 12), 6), maps.flatten(2).mT)
