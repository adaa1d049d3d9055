"""Targets and losses against their formulas, the teachers, and what a student learns from one."""

import csv

import numpy as np
import pytest
import torch
from torch import nn

from recipes.distillation import (
    PRETRAINED_VIT,
    Student,
    blend_targets,
    label_rows,
    load_pretrained_vit,
    student_loss,
)
from recipes.image_dataset import OUTLIER, UNLABELLED
from vit_demo.errors import InputError
from vit_demo.model import ViT, ViTConfig
from vit_demo.model.config import VIT_TINY

LABELS = torch.tensor([2, OUTLIER, 0, UNLABELLED])
SMALL = ViTConfig(image_size=12, patch_size=6, num_classes=4, embed_dim=16, depth=1, num_heads=2)


def test_without_a_teacher_images_without_a_label_have_uniform_targets():
    rows = label_rows(LABELS, 4)
    assert rows.argmax(1).tolist() == [2, 5, 0, 4] and rows.sum(1).tolist() == [1] * 4
    targets = blend_targets(rows, None, 0.7)
    assert targets.tolist() == [[0, 0, 1, 0], [0.25] * 4, [1, 0, 0, 0], [0.25] * 4]


def test_a_teacher_of_the_same_classes_is_blended_with_the_labels():
    logits = torch.randn(4, 4)
    found = blend_targets(label_rows(LABELS, 4), logits, 0.7)
    for i, label in ((0, 2), (2, 0)):
        one_hot = torch.eye(4)[label]
        torch.testing.assert_close(found[i], 0.3 * one_hot + 0.7 * logits[i].softmax(0))
    assert found[1].tolist() == pytest.approx([0.25] * 4), "an outlier's target stays uniform"


def test_the_probability_of_other_classes_is_spread_evenly():
    probabilities = torch.tensor([0.15, 0.05, 0.7, 0.1]).repeat(4, 1)
    probabilities[3] = torch.tensor([0.6, 0.3, 0.1, 0.0])
    rows = label_rows(torch.tensor([1, OUTLIER, UNLABELLED, UNLABELLED]), 2)
    found = blend_targets(rows, (probabilities + 1e-12).log(), 0.9)
    soft = [[0.75, 0.25], [0.5, 0.5], [0.4 * 0.75 + 0.6 / 2, 0.4 * 0.25 + 0.6 / 2], [2 / 3, 1 / 3]]
    expected = torch.tensor([[0.9 * 0.75, 0.9 * 0.25 + 0.1], *soft[1:]])
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


def test_a_mixed_image_is_as_certain_as_its_parts():
    logits = torch.tensor([[0.15, 0.05, 0.7, 0.1]]).log()  # the unlabelled part counts 0.4
    mixed = torch.lerp(*label_rows(torch.tensor([0, UNLABELLED]), 2).split(1), 0.25)
    soft = torch.tensor([0.75, 0.25]) * (0.75 + 0.25 * 0.4) + 0.25 * 0.6 / 2
    hard = torch.tensor([0.75, 0.0]) + 0.25 * soft
    torch.testing.assert_close(blend_targets(mixed, logits, 0.9)[0], 0.1 * hard + 0.9 * soft)


@pytest.mark.parametrize("other_classes", [0, 3])
def test_the_loss_is_the_cross_entropy_with_the_targets_and_with_all_that_the_teacher_knows(other_classes):
    torch.manual_seed(0)
    logits, teacher = (torch.randn(4, 4 + other_classes) for _ in range(2))
    rows = label_rows(LABELS, 4)
    found = student_loss(logits, teacher, rows, 0.9)
    targets = blend_targets(rows, teacher, 0.9)
    expected = -(targets * logits[:, :4].log_softmax(1)).sum(1).mean()
    if other_classes:
        expected = expected - (teacher.softmax(1) * logits.log_softmax(1)).sum(1).mean()
    assert found.item() == pytest.approx(expected.item(), rel=1e-5)


def test_a_student_has_the_logits_of_its_network_first():
    torch.manual_seed(0)
    vit = ViT(SMALL).eval()
    nn.init.normal_(vit.head.bias)
    images = torch.randn(5, 3, 12, 12)
    student = Student(vit, 3)
    found = student(images, 3)
    torch.testing.assert_close(found[:, :4], vit(images, patch_size=3))
    pooled = vit.forward_head(vit.forward_features(images, patch_size=3), pre_logits=True)
    torch.testing.assert_close(found[:, 4:], student.head(pooled))
    assert torch.equal(Student(vit)(images, 6), vit(images, patch_size=6))


def test_the_pretrained_teacher_s_first_classes_are_those_of_the_photo_sets_in_their_order(tmp_path):
    for name, wnids in {"tiny_imagenet40": ["n1", "n2"], "imagenette160": ["n1", "n2"]}.items():
        np.savez(tmp_path / f"{name}.npz", wnids=np.array(wnids))
    model = ViT(VIT_TINY)
    np.savez(tmp_path / PRETRAINED_VIT, **{name: tensor.numpy() for name, tensor in model.state_dict().items()})
    with (tmp_path / "classes.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerows([["wnid", "class_index"], ["n3", 7], ["n2", 5], ["n1", 900]])
    teacher = load_pretrained_vit(tmp_path)
    assert torch.equal(teacher.head.weight[:4], model.head.weight[[900, 5, 900, 5]])
    assert torch.equal(teacher.head.weight[4:], model.head.weight[[7]]), "followed by all other classes"
    (tmp_path / PRETRAINED_VIT).unlink()
    with pytest.raises(InputError, match=PRETRAINED_VIT):
        load_pretrained_vit(tmp_path)
