"""A pretrained teacher's outputs are those of its network, and its first classes are the student's."""

import csv

import numpy as np
import pytest
import torch

from vit_demo.errors import InputError
from vit_demo.model import ViT, ViTConfig
from vit_demo.model.config import VIT_TINY
from vit_demo.training.pretrained_teacher import PretrainedTeacher
from vit_demo.training.teachers import PRETRAINED_VIT, load_pretrained_teacher

SMALL = ViTConfig(image_size=48, patch_size=12, pos_embed_grid=4, num_classes=6, embed_dim=16, depth=2, num_heads=2)


@pytest.fixture
def network() -> ViT:
    model = ViT(SMALL).eval().requires_grad_(False)
    for parameter in model.parameters():
        parameter.normal_(std=0.3)
    return model


@pytest.fixture
def photos() -> torch.Tensor:
    return torch.randint(0, 256, (70, 3, 48, 48), dtype=torch.uint8)


def test_logits_are_the_network_s_and_features_are_standardised(network, photos):
    teacher = PretrainedTeacher(network, photos)
    images = photos.float() / 255
    logits, features, patches = teacher(images)
    assert torch.allclose(logits, network(images * 2 - 1), atol=1e-5)
    assert features.shape == (70, 16) and patches.shape == (70, 16, 2, 2)
    for values in (features, patches.permute(0, 2, 3, 1).flatten(0, 2)):
        assert values.mean(0).abs().max() < 1e-4 and (values.std(0) - 1).abs().max() < 1e-4
    before_head = network.forward_head(network.forward_features(images * 2 - 1), pre_logits=True)
    assert torch.corrcoef(torch.stack([features[:, 3], before_head[:, 3]]))[0, 1] > 0.9999


def test_patch_features_are_the_input_of_the_last_block_averaged_over_two_by_two_patches(network, photos):
    teacher, inputs = PretrainedTeacher(network, photos), list[torch.Tensor]()
    network.blocks[1].attn.register_forward_pre_hook(lambda module, args: inputs.append(args[0]))
    found = teacher(photos.float() / 255).patches
    tokens = inputs[0][:, 1:]  # [70, 4 * 4, 16]
    deviation, mean = torch.std_mean(tokens.unflatten(1, (2, 2, 2, 2)).mean((2, 4)), dim=(0, 1, 2))
    corner = tokens[:, [10, 11, 14, 15]].mean(1)  # the last two rows and columns
    assert torch.allclose(found[:, :, 1, 1], (corner - mean) / deviation, atol=1e-4)


def test_the_first_classes_are_those_of_the_photo_sets_in_their_order(tmp_path):
    for name, wnids in {"tiny_imagenet40": ["n1", "n2"], "imagenette160": ["n1", "n2"]}.items():
        np.savez(tmp_path / f"{name}.npz", wnids=np.array(wnids))
    model = ViT(VIT_TINY.with_classes(1000))
    np.savez(tmp_path / PRETRAINED_VIT, **{name: tensor.numpy() for name, tensor in model.state_dict().items()})
    with (tmp_path / "classes.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerows([["wnid", "class_index"], ["n3", 7], ["n2", 5], ["n1", 900]])
    teacher = load_pretrained_teacher(tmp_path)
    assert torch.equal(teacher.head.weight[:4], model.head.weight[[900, 5, 900, 5]])
    assert torch.equal(teacher.head.weight[4:], model.head.weight[[7]]), "followed by all other classes"
    (tmp_path / PRETRAINED_VIT).unlink()
    with pytest.raises(InputError, match=PRETRAINED_VIT):
        load_pretrained_teacher(tmp_path)


def test_a_larger_image_than_the_network_s_own_has_more_patches(network, photos):
    teacher = PretrainedTeacher(network, photos)
    assert teacher(torch.rand(2, 3, 96, 96)).patches.shape == (2, 16, 4, 4)
    assert teacher.width == SMALL.embed_dim
