"""Classes of one's own, against a plain ridge on timm's features, and against that linear layer in plain torch."""

from __future__ import annotations

import copy
import math
from dataclasses import replace

import numpy as np
import pytest
import timm
import torch
import transformers
from PIL import Image, ImageDraw
from safetensors.torch import load_file, save_file

import vit_demo
from vit_demo.errors import CheckpointError, InputError, LabelError, PresetError
from vit_demo.teaching.ridge import SHRINKAGES, TEMPERATURES, ridge
from vit_demo.weights.safetensors_io import read_metadata

NAMES = ["heart", "star", "moon"]


def pictures(seed: int, count: int) -> list[np.ndarray]:
    """Noise around the colour of a class."""
    chance = np.random.default_rng(seed)
    colour = chance.uniform(50, 200, 3)
    return [(colour + chance.normal(0, 40, (40, 40, 3))).clip(0, 255).astype(np.uint8) for _ in range(count)]


EXAMPLES = {name: pictures(seed, 4 + seed) for seed, name in enumerate(NAMES)}
NEW = pictures(1, 9)[-1]
SEEN = {"input_size": (3, 32, 32), "mean": (0.5,) * 3, "std": (0.5,) * 3, "crop_pct": 1.0, "interpolation": "bilinear"}


def make(num_classes: int = 5, **options: object) -> torch.nn.Module:
    torch.manual_seed(0)
    model = timm.models.vision_transformer.VisionTransformer(
        img_size=32, patch_size=8, embed_dim=24, depth=2, num_heads=3, num_classes=num_classes, **options
    ).eval()
    model.pretrained_cfg = SEEN
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.3)
    return model


@pytest.fixture(scope="module")
def model() -> torch.nn.Module:
    return make()


@pytest.fixture(scope="module")
def taught(model):
    return vit_demo.teach(EXAMPLES, model)


def features(model: torch.nn.Module, images: list) -> np.ndarray:
    explainer = vit_demo.Explainer(model)
    pixels = torch.cat([explainer(image).pixels for image in images])
    with torch.no_grad():
        return model.forward_head(model.forward_features(pixels), pre_logits=True).double().numpy()


def plain_ridge(tokens: np.ndarray, classes: np.ndarray, shrinkage: float) -> tuple[np.ndarray, np.ndarray]:
    """By its normal equations, with all classes equally likely; ``[D, K]`` and ``[K]``."""
    targets = np.eye(3)[classes] - 1 / 3
    center, mean = tokens.mean(0), targets.mean(0)
    x = tokens - center
    weight = np.linalg.solve(x.T @ x + shrinkage * np.eye(x.shape[1]), x.T @ (targets - mean))
    return weight, -np.mean([tokens[classes == kind].mean(0) for kind in range(3)], 0) @ weight


def test_logits_are_those_of_a_plain_ridge_on_the_features_of_timm(model, taught):
    tokens = features(model, [image for images in EXAMPLES.values() for image in images])
    weight, bias = plain_ridge(tokens, np.repeat(range(3), [4, 5, 6]), taught.shrinkage)
    expected = (features(model, [NEW]) @ weight + bias)[0] / taught.temperature
    ex = vit_demo.explore(NEW, taught)
    np.testing.assert_allclose(ex.logits, expected, atol=1e-4)
    assert ex.labels == tuple(NAMES) and taught.labels == ex.labels
    np.testing.assert_allclose(ex.probabilities, np.exp(expected) / np.exp(expected).sum(), atol=1e-5)
    kept = [token for number, token in enumerate(model.state_dict().values()) if number < 3]
    assert all(a.data_ptr() == b.data_ptr() for a, b in zip(kept, taught.module.state_dict().values(), strict=False))


def test_the_logits_add_up_to_0_and_so_are_not_taken_for_probabilities(taught):
    ex = vit_demo.explore(NEW, taught)
    assert abs(ex.logits.sum()) < 1e-4 and np.abs(ex.logits).max() > 0.1


def test_maps_are_those_of_the_network_with_that_layer_in_plain_torch(model, taught):
    plain = copy.deepcopy(model)
    plain.head = torch.nn.Linear(24, 3)
    with torch.no_grad():
        plain.head.weight.copy_(torch.from_numpy(taught.head[:, :-1]))
        plain.head.bias.copy_(torch.from_numpy(taught.head[:, -1]))
    ours, theirs = vit_demo.explore(NEW, taught), vit_demo.explore(NEW, plain, labels=NAMES)
    for method in vit_demo.methods():
        options = {"label": "moon"} if vit_demo.methods()[method].class_specific else {}
        np.testing.assert_allclose(ours.heatmap(method, **options), theirs.heatmap(method, **options), atol=1e-5)
    assert ours.randomization("relevance") == theirs.randomization("relevance")
    assert ours.drop_patches([(0, 0)]).top() == theirs.drop_patches([(0, 0)]).top()
    assert ours.enough().patches == theirs.enough().patches


def test_leaving_one_out_is_as_fitting_again_without_it():
    chance = np.random.default_rng(0)
    tokens, classes = chance.normal(size=(14, 6)), np.repeat(range(3), [4, 5, 5])
    tokens += chance.normal(size=(3, 6))[classes]
    found = ridge(tokens, classes)
    for i in range(len(tokens)):
        others = np.arange(len(tokens)) != i
        weight, bias = plain_ridge(tokens[others], classes[others], found.shrinkage)
        outputs = (tokens[i] @ weight + bias) / found.temperature
        np.testing.assert_allclose(found.left_out[i], np.exp(outputs) / np.exp(outputs).sum(), atol=1e-9)


def test_an_only_example_has_no_say_in_shrinkage_and_temperature():
    chance, far = np.random.default_rng(0), np.array([6, 0, 0, 0])
    tokens = np.concatenate([chance.normal(size=(8, 4)) + far, chance.normal(size=(8, 4)) - far, far[None]])
    classes, losses = np.repeat(range(3), [8, 8, 1]), {}
    for shrinkage in SHRINKAGES * ((tokens - tokens.mean(0)) ** 2).sum() / 17:
        fits = [plain_ridge(np.delete(tokens, i, 0), np.delete(classes, i), shrinkage) for i in range(16)]
        outputs = np.array([token @ weight + bias for token, (weight, bias) in zip(tokens, fits, strict=False)])
        for temperature in TEMPERATURES:
            scores = torch.from_numpy(outputs / temperature).log_softmax(1).numpy()
            losses[shrinkage, temperature] = -(scores[range(16), classes[:16]].sum() + scores.mean()) / 17
    found = ridge(tokens, classes)
    assert (found.shrinkage, found.temperature) == pytest.approx(min(losses, key=losses.get))


def test_accuracy_and_confusion_are_those_of_examples_left_out(taught):
    assert taught.confusion.sum(1).tolist() == [4, 5, 6]
    assert taught.accuracy == np.trace(taught.confusion) / 15 and taught.chance == pytest.approx(
        (4 * 4 + 5 * 5 + 6 * 6) / 15**2
    )
    noise = {name: [np.random.default_rng(10 * i + j).integers(0, 255, (40, 40, 3), np.uint8) for j in range(8)]
             for i, name in enumerate("ab")}  # fmt: skip
    assert vit_demo.teach(noise, make()).accuracy < 0.8, "noise cannot be told apart"


def test_chance_is_what_answers_in_another_order_would_get():
    classes, answers = np.repeat(range(3), [12, 3, 5]), np.repeat([0, 1, 2, 0], [9, 4, 2, 5])
    confusion = np.zeros((3, 3), np.int64)
    np.add.at(confusion, (classes, answers), 1)
    found = replace(vit_demo.teach(EXAMPLES, make(0)), confusion=confusion).chance
    shuffled = [(np.random.default_rng(seed).permutation(answers) == classes).mean() for seed in range(4000)]
    assert found == pytest.approx(np.mean(shuffled), abs=0.005)


@pytest.mark.parametrize("counts", [(10, 10), (2, 2), (20, 5), (7, 7, 7), (3, 30, 12)])
def test_classes_of_noise_are_told_apart_as_often_as_by_chance(counts):
    chance, classes = np.random.default_rng(0), np.repeat(range(len(counts)), counts)
    right = []  # by class
    for _ in range(60):
        guesses = ridge(chance.normal(size=(len(classes), 6)), classes).left_out.argmax(1)
        right.append([(guesses == classes)[classes == kind].mean() for kind in range(len(counts))])
    error = np.std(right, 0).mean() / 60**0.5
    assert abs(np.mean(right) - 1 / len(counts)) < 5 * error


def test_temperature_never_makes_it_quite_sure():
    tokens = np.array([[0.0, 1], [0.1, 1], [5, 1], [5.1, 1]])
    found = ridge(tokens, np.array([0, 0, 1, 1]))
    assert (found.left_out.argmax(1) == [0, 0, 1, 1]).all()
    assert found.left_out.max() < 0.999


@pytest.mark.parametrize("kind", ["timm without classes", "ViTModel", "Dinov2Model", "Dinov2ForImageClassification"])
def test_networks_of_other_libraries_with_and_without_classes(kind):
    if kind.startswith("timm"):
        network = make(0)
    else:
        shape = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 32}
        config = transformers.Dinov2Config if "Dino" in kind else transformers.ViTConfig
        torch.manual_seed(0)
        network = getattr(transformers, kind)(config(**shape, image_size=32, patch_size=8)).eval()
    taught = vit_demo.teach(EXAMPLES, network)
    ex = vit_demo.explore(NEW, taught)
    if kind.startswith("timm"):
        token = network(ex.pixels)
    elif kind == "Dinov2ForImageClassification":
        tokens = network.dinov2(ex.pixels).last_hidden_state
        token = torch.cat([tokens[:, 0], tokens[:, 1:].mean(1)], 1)
    else:
        token = network(ex.pixels).pooler_output
    expected = token.detach().numpy() @ taught.head[:, :-1].T + taught.head[:, -1]
    np.testing.assert_allclose(ex.logits, expected[0], atol=1e-4)
    assert ex.heatmap("relevance").max() > 0


def test_a_bundled_network_and_its_file_give_the_same(tmp_path, monkeypatch):
    digits = {name: [digit(d, s) for s in range(3)] for d, name in enumerate(("bar", "box"))}
    taught = vit_demo.teach(digits, "digits-tiny")
    monkeypatch.chdir(tmp_path)
    taught.save("mine.safetensors")
    ex, again = (vit_demo.explore(digit(1, 5), model) for model in (taught, "mine.safetensors"))
    np.testing.assert_array_equal(ex.logits, again.logits)
    assert ex.top(1)[0][0] == "box" and again.labels == ("bar", "box")
    header = read_metadata(tmp_path / "mine.safetensors")
    assert header["model"] == "digits-tiny" and header["commit"]
    ex.save("result.safetensors")
    back = vit_demo.load_result("result.safetensors", "mine.safetensors")
    np.testing.assert_allclose(back.heatmap("relevance"), ex.heatmap("relevance"), atol=1e-6)
    loaded = vit_demo.load("mine.safetensors")
    np.testing.assert_allclose(loaded(ex.pixels, patch_size=ex.patch_size)[0].detach(), ex.logits, atol=1e-5)


def digit(kind: int, turn: int) -> Image.Image:
    """A bar or a box on paper, turned."""
    picture = Image.new("RGB", (60, 60), "white")
    pen = ImageDraw.Draw(picture)
    if kind:
        pen.rectangle((17, 17, 43, 43), outline="black", width=5)
    else:
        pen.rectangle((27, 10, 33, 50), fill="black")
    return picture.rotate(5 * turn, fillcolor="white")


@pytest.mark.parametrize(
    "change",
    [
        {"commit": "another"},
        {"format": "another"},
        {"labels": '["one"]'},
        {"labels": '["a", "b", "c"]'},
        {"labels": "[" * 100_000},
        {"patch_size": "many"},
        {"model": "mine.safetensors"},
    ],
)
def test_a_file_for_another_network_or_a_damaged_one_is_refused(tmp_path, monkeypatch, change):
    monkeypatch.chdir(tmp_path)
    digits = {name: [digit(d, s) for s in range(3)] for d, name in enumerate(("bar", "box"))}
    vit_demo.teach(digits, "digits-tiny").save("mine.safetensors")
    header = read_metadata(tmp_path / "mine.safetensors")
    save_file(load_file("mine.safetensors"), "mine.safetensors", header | change)
    with pytest.raises(CheckpointError, match="teach the network again"):
        vit_demo.explore(digit(1, 0), "mine.safetensors")


def test_numbers_that_are_not_finite_and_heads_of_another_width_are_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    digits = {name: [digit(d, s) for s in range(3)] for d, name in enumerate(("bar", "box"))}
    vit_demo.teach(digits, "digits-tiny").save("mine.safetensors")
    header, head = read_metadata(tmp_path / "mine.safetensors"), load_file("mine.safetensors")["head"]
    save_file({"head": head * math.nan}, "mine.safetensors", header)
    with pytest.raises(CheckpointError, match="teach the network again"):
        vit_demo.explore(digit(1, 0), "mine.safetensors")
    for dtype in (torch.complex64, torch.bool, torch.float8_e4m3fn):
        save_file({"head": torch.ones(head.shape).to(dtype)}, "mine.safetensors", header)
        with pytest.raises(CheckpointError, match="teach the network again"):
            vit_demo.explore(digit(1, 0), "mine.safetensors")
    save_file({"head": head[:, 1:].contiguous()}, "mine.safetensors", header)
    with pytest.raises(PresetError, match="taught for another network"):
        vit_demo.explore(digit(1, 0), "mine.safetensors")


@pytest.mark.parametrize(
    ("examples", "kind", "words"),
    [
        ([NEW], InputError, "a dict from names to lists"),
        ({"a": [NEW, NEW]}, LabelError, "2 to 50 classes, not 1"),
        ({str(i): [NEW, NEW] for i in range(100)}, LabelError, "2 to 50 classes, not 100"),
        ({"a": EXAMPLES["star"], "b": [NEW]}, InputError, "“b” has 1: give at least two"),
        ({"a": EXAMPLES["star"], "b": []}, InputError, "“b” has 0: give at least two"),
        ({"a": EXAMPLES["star"], "b": "picture.png"}, InputError, "not one str"),
        ({"a": EXAMPLES["star"], "b": [NEW, EXAMPLES["star"][2]]}, InputError, "of “a” and “b” are the same"),
        ({"a": EXAMPLES["star"], "b": [NEW, NEW]}, InputError, "of “b” are the same"),
        ({"a": EXAMPLES["star"], " ": EXAMPLES["moon"]}, LabelError, "one line of 1 to 40"),
        ({"a": EXAMPLES["star"], "b" * 41: EXAMPLES["moon"]}, LabelError, "one line of 1 to 40"),
        ({"a": EXAMPLES["star"], "b\nc": EXAMPLES["moon"]}, LabelError, "one line of 1 to 40"),
        ({"a": EXAMPLES["star"], 7: EXAMPLES["moon"]}, LabelError, "one line of 1 to 40"),
        ({"a": EXAMPLES["star"], "a ": EXAMPLES["moon"]}, LabelError, "Two classes are called “a”"),
        ({"a": EXAMPLES["star"], "b": [NEW, b"no picture"]}, vit_demo.ImageError, "b: Image 1: "),
    ],
)
def test_bad_examples_get_one_sentence(model, examples, kind, words):
    with pytest.raises(kind, match=words) as error:
        vit_demo.teach(examples, model)
    assert "\n" not in str(error.value)


def test_an_empty_drawing_is_named():
    blank = np.full((40, 40, 3), 255, np.uint8)
    with pytest.raises(vit_demo.EmptyDrawingError, match="box: Image 1"):
        vit_demo.teach({"bar": [digit(0, 0), digit(0, 1)], "box": [digit(1, 0), blank]}, "digits-tiny")


def test_a_head_that_reads_two_vectors_one_by_one_is_refused():
    class TwoHeads(timm.models.vision_transformer.VisionTransformer):
        def forward_head(self, x, pre_logits=False):
            return (self.head(self.norm(x)[:, 0]) + self.head(self.norm(x)[:, 1:].mean(1))) / 2

    torch.manual_seed(0)
    network = TwoHeads(img_size=32, patch_size=8, embed_dim=24, depth=2, num_heads=3, num_classes=5).eval()
    network.pretrained_cfg = SEEN
    with pytest.raises(PresetError, match="not one vector"):
        vit_demo.teach(EXAMPLES, network)


def test_a_network_in_memory_has_no_file(taught, tmp_path):
    with pytest.raises(InputError, match="no name"):
        taught.save(tmp_path / "mine.safetensors")
