"""Each objective against its formula, and a whole training with each kind of distillation."""

import csv
from copy import deepcopy
from dataclasses import replace

import pytest
import torch

from vit_demo.cli import main
from vit_demo.model import ViT, ViTConfig
from vit_demo.training import recipes, run
from vit_demo.training.augment import random_crops
from vit_demo.training.batches import Batch
from vit_demo.training.data import OUTLIER, UNLABELLED, ImageDataset
from vit_demo.training.loop import Trainer
from vit_demo.training.objectives import CrossEntropy, FeatureDistillation, OnlineDistillation, StoredDistillation
from vit_demo.training.recipes import Recipe
from vit_demo.training.student import Student
from vit_demo.training.teacher_outputs import TEACHER_SIDE, TeacherOutputs
from vit_demo.weights import PRESETS
from vit_demo.weights.checkpoints import load_checkpoint, save_checkpoint

CPU = torch.device("cpu")
SMALL = ViTConfig(image_size=12, patch_size=6, pos_embed_grid=4, num_classes=4, embed_dim=16, depth=1, num_heads=2)
LABELS = torch.tensor([2, OUTLIER, 0, UNLABELLED])


def random_network(**fields) -> ViT:
    """A small network whose outputs differ from photo to photo."""
    model = ViT(replace(SMALL, **fields)).eval().requires_grad_(False)
    for parameter in model.parameters():
        parameter.normal_(std=0.3)
    return model


def random_teacher() -> ViT:
    return random_network(image_size=TEACHER_SIDE, patch_size=40)


def random_outputs(views: int = 1, count: int = 24) -> TeacherOutputs:
    shapes = (views, count, 4), (views, count, 16), (views, count, 16, 2, 2)
    probabilities, features, patches = (torch.randn(*shape) for shape in shapes)
    crops = torch.stack([random_crops(count) for _ in range(views)])
    return TeacherOutputs(crops, probabilities.softmax(2), features, patches)


def sequences_per_batch(targets, patch_targets=None) -> Batch:
    return Batch(torch.randn(4, 3, 12, 12), LABELS, targets, patch_targets, 6, None)


def plain_cross_entropy(logits, targets):
    return sum(-(targets[i] * logits[i].log_softmax(0)).sum() for i in range(len(logits))) / len(logits)


def test_cross_entropy_has_uniform_targets_for_images_without_a_label():
    objective, model = CrossEntropy(4), random_network()
    targets = objective.targets(LABELS, torch.arange(4), 0).vectors
    assert targets.tolist() == [[0, 0, 1, 0], [0.25] * 4, [1, 0, 0, 0], [0.25] * 4]
    batch = sequences_per_batch(targets)
    loss, logits = objective(model, batch)
    assert torch.equal(logits, model(batch.images, patch_size=6))
    assert loss == pytest.approx(plain_cross_entropy(logits, targets).item(), rel=1e-5)


def test_online_distillation_blends_the_labels_with_the_teacher_s_probabilities():
    teacher, model = random_network(), random_network()
    objective = OnlineDistillation(4, teacher, 0.7)
    targets = objective.targets(LABELS, torch.arange(4), 0).vectors
    batch = sequences_per_batch(targets)
    loss, logits = objective(model, batch)
    expected = targets.clone()
    for i in (0, 2):  # the images with a label
        expected[i] = 0.3 * targets[i] + 0.7 * teacher(batch.images, patch_size=6)[i].softmax(0)
    assert loss == pytest.approx(plain_cross_entropy(logits, expected).item(), rel=1e-5)


def test_stored_distillation_learns_images_without_a_label_from_the_teacher_alone():
    outputs = random_outputs(views=2)
    indices = torch.tensor([3, 5, 7, 9])
    targets = StoredDistillation(4, outputs, 0.9).targets(LABELS, indices, epoch=3)
    teacher = outputs.probabilities[1, indices]
    assert torch.allclose(targets.vectors[[1, 3]], teacher[[1, 3]])
    one_hot = torch.eye(4)[[2, 0]]
    assert torch.allclose(targets.vectors[[0, 2]], 0.1 * one_hot + 0.9 * teacher[[0, 2]], atol=1e-6)
    assert targets.crops.shape == (4, 4) and targets.patch_features is None


def test_feature_distillation_adds_the_squared_errors_of_both_kinds_of_features():
    outputs = random_outputs()
    objective = FeatureDistillation(4, outputs, 0.9, feature_weight=3.0, patch_weight=2.0)
    student = objective.wrap(random_network())
    targets = objective.targets(LABELS, torch.arange(4), 0)
    assert torch.equal(targets.vectors[:, 4:], outputs.standardised("features", 0, torch.arange(4)))
    batch = sequences_per_batch(targets.vectors, torch.randn(4, 4, 16))
    loss, logits = objective(student, batch)
    _, features, patches = student(batch.images, patch_size=6)
    expected = plain_cross_entropy(logits, targets.vectors[:, :4])
    expected = expected + 3 * ((features - targets.vectors[:, 4:]) ** 2).sum() / features.numel()
    expected = expected + 2 * ((patches - batch.patch_targets) ** 2).sum() / patches.numel()
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)


@pytest.fixture
def data() -> ImageDataset:
    return ImageDataset(torch.randint(0, 256, (24, 3, 12, 12), dtype=torch.uint8), torch.arange(24) % 4, tuple("abcd"))


@pytest.fixture
def preset(monkeypatch):
    """A small ``photos-tiny`` with a recipe that takes a second."""
    small = replace(
        PRESETS["photos-tiny"], config=SMALL, patch_sizes=(3, 6), default_patch_size=3, labels=tuple("abcd")
    )
    monkeypatch.setitem(PRESETS, "photos-tiny", small)
    recipe = Recipe(
        patch_size_weights={3: 0.5, 6: 0.5},
        epochs=6,
        batch_size=12,
        precision="fp32",
        learning_rate=1e-2,
        ema_decay=0.5,
        mix_probability=0.3,
        teacher_views=2,
        distillation_weight=0.9,
        feature_loss_weight=3.0,
        patch_loss_weight=2.0,
    )
    monkeypatch.setitem(recipes.RECIPES, "photos-tiny", recipe)
    return small


@pytest.mark.parametrize("weights", [(10.0, 0.0), (0.0, 10.0)], ids=["image features", "patch features"])
def test_a_student_learns_the_features_and_only_the_vit_is_exported(weights, preset, data, monkeypatch, tmp_path):
    recipe = replace(recipes.RECIPES["photos-tiny"], mix_probability=0.0)
    monkeypatch.setitem(recipes.RECIPES, "photos-tiny", recipe)
    features = data.images.float().mean((2, 3))[:, :1].expand(1, 24, 16)
    patches = features[..., None, None].expand(1, 24, 16, 2, 2)
    outputs = replace(random_outputs(), features=features, patches=patches)
    objective = FeatureDistillation(4, outputs, 0.9, feature_weight=weights[0], patch_weight=weights[1])
    trainer = Trainer(preset, "photos-tiny", data, tmp_path, device=CPU, objective=objective, epochs=20)
    assert isinstance(trainer.model, Student) and isinstance(trainer.trained_network, ViT)
    trainer.run(data)
    with (tmp_path / "photos-tiny.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert float(rows[-1]["loss"]) < float(rows[0]["loss"]) - 2
    student, exported = trainer.ema.module.eval(), trainer.trained_network.eval()
    x = torch.randn(2, 3, 12, 12)
    assert torch.equal(student(x, patch_size=3)[0], exported(x, patch_size=3))


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({}, FeatureDistillation),
        ({"patch_loss_weight": 0.0}, FeatureDistillation),
        ({"feature_loss_weight": 0.0, "patch_loss_weight": 0.0}, StoredDistillation),
        ({"teacher_views": 0}, CrossEntropy),
    ],
    ids=["features", "image features", "probabilities", "labels"],
)
def test_the_recipe_decides_the_objective(fields, kind, preset, data, monkeypatch, tmp_path):
    monkeypatch.setattr(
        run, "load_pretrained_teacher", lambda folder: random_network(image_size=TEACHER_SIDE, patch_size=40)
    )
    monkeypatch.setattr(run, "compute_teacher_outputs", lambda *_: random_outputs())
    recipe = replace(recipes.RECIPES["photos-tiny"], **fields)
    objective, seconds = run.prepare_objective(preset, recipe, [data], data, tmp_path, tmp_path, device=CPU, seed=0)
    assert type(objective) is kind and seconds == 0


def test_images_without_a_label_are_trained_on_with_the_teacher_s_probabilities(preset, data, tmp_path, monkeypatch):
    recipe = replace(recipes.RECIPES["photos-tiny"], mix_probability=0.0, ema_decay=0.0)
    monkeypatch.setitem(recipes.RECIPES, "photos-tiny", recipe)
    probabilities = torch.tensor([0.1, 0.2, 0.3, 0.4]).expand(1, 24, 4)
    objective = StoredDistillation(4, replace(random_outputs(), probabilities=probabilities), 0.9)
    data = replace(data, labels=torch.where(torch.arange(24) % 2 == 0, UNLABELLED, OUTLIER))
    trainer = Trainer(preset, "photos-tiny", data, tmp_path, device=CPU, objective=objective, epochs=1)
    targets, step = [], trainer.train_step
    monkeypatch.setattr(
        trainer, "train_step", lambda batch, rate: (targets.append(batch.targets), step(batch, rate))[1]
    )
    trainer.run()
    assert torch.allclose(torch.cat(targets), probabilities[0]) and isinstance(trainer.model, ViT)


def train_from(start, photos, tmp_path, monkeypatch) -> tuple[int, list[ViT]]:
    """Runs the command line with ``--start``; the exit code, and the network as it was before training."""
    monkeypatch.setattr(
        run, "load_pretrained_teacher", lambda folder: random_network(image_size=TEACHER_SIDE, patch_size=40)
    )
    initial: list[ViT] = []
    train = Trainer.run
    monkeypatch.setattr(
        Trainer, "run", lambda self, data: (initial.append(deepcopy(self.trained_network)), train(self, data))
    )
    command = ["train", "photos-tiny", "--data", str(photos), "--out", str(tmp_path / "runs"), "--epochs", "1"]
    return main([*command, "--start", str(start)]), initial


def test_training_can_start_from_a_checkpoint(preset, photos, monkeypatch, tmp_path):
    start, path = random_network(), tmp_path / "begin.safetensors"
    save_checkpoint(path, start, {"seed": 7})
    code, (initial,) = train_from(path, photos, tmp_path, monkeypatch)
    assert code == 0
    half = start.half().float().state_dict()
    assert all(torch.equal(tensor, half[name]) for name, tensor in initial.state_dict().items())
    exported, record = load_checkpoint(tmp_path / "runs" / "photos-tiny.safetensors")
    assert record["start"] == {"seed": 7} and record["command"].endswith("--epochs 1 --start begin.safetensors")
    assert not torch.equal(exported.head.weight, half["head.weight"])


@pytest.mark.parametrize("fields", [{"embed_dim": 8}, {"depth": 2}], ids=["narrower", "deeper"])
def test_a_checkpoint_of_another_shape_is_refused(fields, preset, photos, monkeypatch, tmp_path, capsys):
    save_checkpoint(tmp_path / "other.safetensors", random_network(**fields), {})
    assert train_from(tmp_path / "other.safetensors", photos, tmp_path, monkeypatch) == (2, [])
    error = capsys.readouterr().err
    assert "other.safetensors" in error and error.count("\n") == 1
    assert train_from(tmp_path / "missing.safetensors", photos, tmp_path, monkeypatch) == (2, [])
