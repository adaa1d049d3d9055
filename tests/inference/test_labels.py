"""The names of classes: told apart, as the library has them, and never assumed without a word."""

import numpy as np
import pytest
import timm
import torch
import torchvision
import transformers

import vit_demo
from vit_demo.inference.explainer import GIVEN
from vit_demo.inference.labels import OTHER_COUNT
from vit_demo.training.labelled_folder import labelled_pictures
from vit_demo.weights.imagenet import IMAGENET_ASSUMED

CATEGORIES = torchvision.models.ViT_B_16_Weights.IMAGENET1K_V1.meta["categories"]


def network(count: int, **cfg):
    torch.manual_seed(0)
    module = timm.create_model("vit_tiny_patch16_224", img_size=32, depth=1, embed_dim=12, num_classes=count).eval()
    module.pretrained_cfg = {**module.pretrained_cfg, "input_size": (3, 32, 32), **cfg}
    return module


def test_two_classes_of_one_name_are_told_apart():
    """As transformers names ImageNet's two cranes."""
    names = ["crane" if "crane" in name else name for name in CATEGORIES]
    x, config = torch.randn(3, 32, 32), transformers.ViTConfig(
        hidden_size=12, num_hidden_layers=1, num_attention_heads=3, intermediate_size=24, image_size=32, patch_size=16,
        id2label=dict(enumerate(names)),
    )  # fmt: skip
    torch.manual_seed(0)
    module = transformers.ViTForImageClassification(config).eval()
    torch.nn.init.normal_(module.classifier.weight)
    ex = vit_demo.explore(x, module)
    assert [i for i, name in enumerate(names) if name == "crane"] == [134, 517]
    assert (ex.labels[134], ex.labels[517]) == ("crane (134)", "crane (517)") and len(set(ex.labels)) == 1000
    for index in (134, 517):
        np.testing.assert_array_equal(ex.relevance(f"crane ({index})"), ex.relevance(index))
    with pytest.raises(vit_demo.LabelError, match=r"did you mean 'crane \(134\)' or 'crane \(517\)'"):
        ex.relevance("crane")
    own = vit_demo.explore(x, network(3), labels=["a", "b", "a"])
    assert own.labels == ("a (0)", "b", "a (2)") and own.with_labels(["b"]) is own


def test_names_that_are_assumed_are_said():
    image, x = np.zeros((40, 40, 3), np.uint8), torch.randn(3, 32, 32)
    assert vit_demo.explore(image, network(1000)).preprocessing.note == IMAGENET_ASSUMED
    assert vit_demo.explore(x, network(1000)).preprocessing.note == f"{GIVEN} {IMAGENET_ASSUMED}"
    assert vit_demo.explore(image, network(999)).preprocessing.note == ""
    assert vit_demo.explore(image, network(1000), labels=CATEGORIES).preprocessing.note == ""


def test_names_of_timm_are_kept(tmp_path):
    names = [f"thing {index}" for index in range(1000)]
    module = network(1000, label_names=names)
    ex = vit_demo.explore(torch.randn(3, 32, 32), module)
    assert ex.labels == tuple(names) and ex.preprocessing.note == GIVEN
    short = vit_demo.explore(torch.randn(3, 32, 32), network(1000, label_names=names[:7]))
    assert short.labels[:2] == ("0", "1") and short.preprocessing.note == f"{GIVEN} {OTHER_COUNT}"
    timm.models.save_for_hf(network(1000), tmp_path, safe_serialization=True)
    folder = vit_demo.explore(np.zeros((40, 40, 3), np.uint8), str(tmp_path))
    assert IMAGENET_ASSUMED in folder.preprocessing.note and folder.labels[0] == "tench"


FOLDERS = {
    "numbers that are labels": (["10", "3", "1", "0"], {"0": 3, "1": 2, "10": 0}),
    "numbers that are not": (["a", "b", "c"], {"0": 0, "2": 2}),
    "signs": (["-30", "30", "0"], {"-30": 0, "30": 1}),
    "grades": (["c", "c-", "c+"], {"c": 0, "c-": 1}),
    "capitals": (["Cardigan", "cardigan", "cat"], {"cardigan": 1, "Cardigan": 0, "CAT": 2}),
    "file names": (["tabby cat", "half-moon"], {"tabby_cat": 0, "Half Moon": 1}),
    "ids": (list(CATEGORIES), {"n02129165": 291, "tench": 0}),
}
UNCLEAR = {
    r"'Cardigan' and 'cardigan': name the folder 'CARDIGAN'": (["Cardigan", "cardigan"], ["CARDIGAN"]),
    "'tabby cat' and 'tabby_cat' name one class": (["tabby cat", "dog"], ["tabby cat", "tabby_cat"]),
    "no class '7'": (["a", "b"], ["7"]),
    "no class '1'": (["a", "b"], ["a", "1"]),
    "no class '2'": (["10", "3", "1"], ["10", "2"]),
    "no class '30'": (["-30", "x"], ["30"]),
}


def make(folder, names):
    for name in names:
        (folder / name).mkdir()
        (folder / name / "x.png").write_bytes(b"")
    return folder


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_is_the_class_that_it_names(name, tmp_path):
    labels, expected = FOLDERS[name]
    found = labelled_pictures(make(tmp_path, expected), labels)
    assert {path.parent.name: index for path, index in found} == expected


@pytest.mark.parametrize("message", UNCLEAR)
def test_a_folder_that_names_no_single_class_is_refused(message, tmp_path):
    labels, names = UNCLEAR[message]
    with pytest.raises(vit_demo.LabelError, match=message):
        labelled_pictures(make(tmp_path, names), labels)
