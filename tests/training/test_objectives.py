"""Each objective against its formula, and a whole training with each kind of distillation."""

import csv
from copy import deepcopy
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from vit_demo.cli import main
from vit_demo.model import ViT, ViTConfig
from vit_demo.training import recipes, run
from vit_demo.training.batches import Batch, BatchLoader
from vit_demo.training.data import OUTLIER, UNLABELLED, ImageDataset
from vit_demo.training.loop import Trainer
from vit_demo.training.objectives import CrossEntropy, Distillation, FeatureDistillation
from vit_demo.training.predictions import normalise
from vit_demo.training.pretrained_teacher import PretrainedTeacher, TeacherOutputs
from vit_demo.training.recipes import Recipe
from vit_demo.training.student import Student, resample_patch_features
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


def random_teacher(width: int = 16) -> PretrainedTeacher:
    network = random_network(image_size=24, num_classes=7, embed_dim=width)
    return PretrainedTeacher(network, torch.randint(0, 256, (64, 3, 24, 24), dtype=torch.uint8))


def random_batch(targets) -> Batch:
    return Batch(torch.randn(4, 3, 12, 12), torch.rand(4, 3, 24, 24), LABELS, targets, 6, None)


def plain_cross_entropy(logits, targets):
    return sum(-(targets[i] * logits[i].log_softmax(0)).sum() for i in range(len(logits))) / len(logits)


def test_cross_entropy_has_uniform_targets_for_images_without_a_label():
    objective, model = CrossEntropy(4), random_network()
    targets = objective.targets(LABELS)
    assert targets.tolist() == [[0, 0, 1, 0], [0.25] * 4, [1, 0, 0, 0], [0.25] * 4]
    batch = random_batch(targets)
    loss, logits = objective(model, batch)
    assert torch.equal(logits, model(batch.images, patch_size=6))
    assert loss == pytest.approx(plain_cross_entropy(logits, targets).item(), rel=1e-5)


def test_distillation_blends_the_labels_with_the_teacher_s_probabilities():
    teacher, model = random_network(), random_network()
    objective = Distillation(4, teacher, 0.7)
    targets = objective.targets(LABELS)
    batch = random_batch(targets)
    loss, logits = objective(model, batch)
    expected = targets.clone()
    for i in (0, 2):  # the images with a label
        expected[i] = 0.3 * targets[i] + 0.7 * teacher(batch.images, patch_size=6)[i].softmax(0)
    assert loss == pytest.approx(plain_cross_entropy(logits, expected).item(), rel=1e-5)


def test_the_probability_of_other_classes_is_spread_evenly():
    objective = FeatureDistillation(2, random_teacher(), 0.9, feature_weight=1.0, patch_weight=1.0)
    probabilities = torch.tensor([0.15, 0.05, 0.7, 0.1]).repeat(4, 1)
    probabilities[3] = torch.tensor([0.6, 0.3, 0.1, 0.0])
    targets = objective.targets(torch.tensor([1, OUTLIER, UNLABELLED, UNLABELLED]))
    found = objective.blend(targets, (probabilities + 1e-12).log())
    soft = [[0.75, 0.25], [0.5, 0.5], [0.4 * 0.75 + 0.6 / 2, 0.4 * 0.25 + 0.6 / 2], [2 / 3, 1 / 3]]
    expected = torch.tensor([[0.9 * 0.75, 0.9 * 0.25 + 0.1], *soft[1:]])
    assert torch.allclose(found, expected, atol=1e-5)


def test_a_mixed_image_is_as_certain_as_its_parts():
    objective = FeatureDistillation(2, random_teacher(), 0.9, feature_weight=1.0, patch_weight=1.0)
    logits = torch.tensor([[0.15, 0.05, 0.7, 0.1]]).log()  # the unlabelled part counts 0.4
    mixed = torch.lerp(*objective.targets(torch.tensor([0, UNLABELLED])).split(1), 0.25)
    soft = torch.tensor([0.75, 0.25]) * (0.75 + 0.25 * 0.4) + 0.25 * 0.6 / 2
    hard = torch.tensor([0.75, 0.0]) + 0.25 * soft
    assert torch.allclose(objective.blend(mixed, logits)[0], 0.1 * hard + 0.9 * soft, atol=1e-6)


def test_feature_distillation_adds_the_squared_errors_of_both_kinds_of_features():
    objective = FeatureDistillation(4, random_teacher(), 0.9, feature_weight=3.0, patch_weight=2.0)
    student = objective.wrap(random_network())
    kept_patches = torch.tensor([[3, 1], [0, 2], [1, 2], [3, 0]])
    batch = replace(random_batch(objective.targets(LABELS)), kept_patches=kept_patches)
    loss, logits = objective(student, batch)
    outputs = objective.teacher(batch.teacher_images)
    _, features, patches = student(batch.images, patch_size=6, kept_patches=kept_patches)
    expected = plain_cross_entropy(logits, objective.blend(batch.targets, outputs.logits))
    expected = expected + 3 * ((features - outputs.features) ** 2).sum() / features.numel()
    kept = torch.stack([outputs.patches.flatten(2)[i, :, kept_patches[i]].T for i in range(4)])  # [4, 2, 16]
    expected = expected + 2 * ((patches - kept) ** 2).sum() / patches.numel()
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)


def test_patch_features_are_resampled_to_the_student_s_grid():
    maps, kept = torch.randn(5, 7, 2, 2), torch.stack([torch.randperm(16)[:6] for _ in range(5)])
    large = F.interpolate(maps, (4, 4), mode="bilinear").flatten(2)
    found = resample_patch_features(maps, (4, 4), kept)
    for i in range(5):
        assert torch.equal(found[i], large[i][:, kept[i]].T)
    assert torch.equal(resample_patch_features(maps, (2, 2)), maps.flatten(2).mT)


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
        teacher_image_size=24,
        distillation_weight=0.9,
        feature_loss_weight=3.0,
        patch_loss_weight=2.0,
    )
    monkeypatch.setitem(recipes.RECIPES, "photos-tiny", recipe)
    return small


def test_teacher_and_student_see_the_same_mixed_images(preset, data, tmp_path):
    objective = FeatureDistillation(4, random_teacher(), 0.9, feature_weight=1.0, patch_weight=1.0)
    recipe = replace(recipes.RECIPES["photos-tiny"], mix_probability=1.0)
    loader = BatchLoader(data, preset, recipe, objective.targets, device=CPU, seed=0, epochs=1)
    loader.seed_epoch(0)
    batch = loader.load(0, torch.arange(12), 6)
    assert batch.teacher_images.shape == (12, 3, 24, 24) and batch.images.shape == (12, 3, 12, 12)
    small = F.interpolate(batch.teacher_images, size=12, mode="bilinear", antialias=True)
    assert torch.allclose(batch.images, normalise(small, preset)) and batch.teacher_images.min() >= 0
    assert ((batch.targets > 0).sum(1) == 2).all() and torch.allclose(batch.targets.sum(1), torch.ones(12))
    assert torch.equal(batch.labels, data.labels[:12])


@pytest.mark.parametrize("weights", [(10.0, 0.0), (0.0, 10.0)], ids=["image features", "patch features"])
def test_a_student_learns_the_features_and_only_the_vit_is_exported(weights, preset, data, monkeypatch, tmp_path):
    recipe = replace(recipes.RECIPES["photos-tiny"], mix_probability=0.0)
    monkeypatch.setitem(recipes.RECIPES, "photos-tiny", recipe)

    class OfMeanColour(PretrainedTeacher):  # features that a student can learn in a second
        def __call__(self, images):
            logits, _, patches = super().__call__(images)
            means = 10 * images.mean((1, 2, 3))[:, None]
            return TeacherOutputs(logits, means.expand(-1, 16), means[..., None, None].expand_as(patches))

    teacher = OfMeanColour(random_network(image_size=24, num_classes=7), data.images)
    objective = FeatureDistillation(4, teacher, 0.9, feature_weight=weights[0], patch_weight=weights[1])
    trainer = Trainer(preset, "photos-tiny", data, tmp_path, device=CPU, objective=objective, epochs=20)
    assert isinstance(trainer.model, Student) and isinstance(trainer.trained_network, ViT)
    trainer.run(data)
    with (tmp_path / "photos-tiny.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert float(rows[-1]["loss"]) < float(rows[0]["loss"]) / 2
    student, exported = trainer.ema.module.eval(), trainer.trained_network.eval()
    x = torch.randn(2, 3, 12, 12)
    assert torch.equal(student(x, patch_size=3)[0], exported(x, patch_size=3))


@pytest.mark.parametrize(("size", "kind"), [(24, FeatureDistillation), (0, CrossEntropy)], ids=["teacher", "labels"])
def test_the_recipe_decides_the_objective(size, kind, preset, data, monkeypatch, tmp_path):
    monkeypatch.setattr(run, "load_pretrained_teacher", lambda folder: random_network(image_size=24, num_classes=7))
    recipe = replace(recipes.RECIPES["photos-tiny"], teacher_image_size=size)
    objective, seconds = run.prepare_objective(preset, recipe, data, data, tmp_path, tmp_path, device=CPU, seed=0)
    assert type(objective) is kind and seconds == 0


def train_from(start, photos, tmp_path, monkeypatch) -> tuple[int, list[ViT]]:
    """Runs the command line with ``--start``; the exit code, and the network as it was before training."""
    monkeypatch.setattr(run, "load_pretrained_teacher", lambda folder: random_network(image_size=24, num_classes=7))
    monkeypatch.setattr(run, "STORED_SIDE", 24)
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
