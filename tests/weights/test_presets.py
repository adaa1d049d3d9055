import pickle
from dataclasses import replace

import numpy as np
import pytest
from torchvision.models import ViT_B_16_Weights

import vit_demo
from vit_demo.errors import PresetError
from vit_demo.images import MNIST_MEAN, MNIST_STD
from vit_demo.model import ViT
from vit_demo.training.small import NUM_TEST, held_out_digit
from vit_demo.weights import PRESETS, find_preset
from vit_demo.weights.imagenet import IMAGENET_LABELS


@pytest.mark.parametrize("preset", PRESETS.values(), ids=PRESETS)
def test_a_preset_describes_its_network(preset):
    if not preset.library:
        model = ViT(preset.config)
        assert preset.num_parameters == sum(p.numel() for p in model.parameters())
        assert preset.num_blocks == len(model.blocks)
    assert len(preset.labels) == len(set(preset.labels)) == preset.config.num_classes
    assert len(preset.mean) == len(preset.std) == preset.config.in_channels
    assert preset.default_patch_size in preset.patch_sizes
    assert all(preset.image_size % p == 0 for p in preset.patch_sizes)
    assert vit_demo.presets()[preset.name] is preset


def test_labels_of_imagenet_are_those_of_torchvision():
    assert tuple(ViT_B_16_Weights.IMAGENET1K_V1.meta["categories"]) == IMAGENET_LABELS == PRESETS["vit-b16"].labels


def test_confidence_is_low_below_a_probability_and_above_an_entropy():
    preset = replace(PRESETS["digits-small"], confidence_threshold=0.5, max_entropy=1.0)
    probabilities = np.array([[0.5, 0.5, 0.0], [0.6, 0.3, 0.1]])
    assert preset.is_confident(probabilities).tolist() == [True, False]
    assert not replace(preset, confidence_threshold=0.51).is_confident(probabilities[0])


@pytest.mark.parametrize(("count", "named"), [(1, 1), (100, 100), (101, 0)])
def test_at_most_100_labels_are_named_beside_a_prediction(count, named):
    labels = tuple(f"label {i}" for i in range(count))
    assert replace(PRESETS["photos-tiny"], labels=labels).few_labels == labels[:named]


def test_digits_are_normalised_as_they_were_trained():
    for preset in PRESETS.values():
        if preset.task == "digits":
            assert (preset.mean, preset.std) == ((MNIST_MEAN,), (MNIST_STD,))


@pytest.mark.parametrize("name", ["vit-9000", "", None, ["digits-tiny"]])
def test_the_error_for_an_unknown_preset_lists_the_known_ones(name):
    with pytest.raises(PresetError, match="choose one of digits-small"):
        find_preset(name)


def test_parameters_are_those_of_the_network_that_serves_a_patch_size():
    notebook = PRESETS["digits-notebook"]
    networks = {p: vit_demo.load("digits-notebook", patch_size=p) for p in notebook.patch_sizes}
    counts = {p: sum(weight.numel() for weight in network.parameters()) for p, network in networks.items()}
    assert counts == {4: 1642, 7: 1906, 14: 3082}
    assert {p: notebook.num_parameters_at(p) for p in notebook.patch_sizes} == counts
    flexible = PRESETS["digits-tiny"]
    assert {flexible.num_parameters_at(p) for p in flexible.patch_sizes} == {flexible.num_parameters}
    with pytest.raises(PresetError, match="no patch size 5"):
        notebook.num_parameters_at(5)


@pytest.mark.parametrize("preset", PRESETS.values(), ids=PRESETS)
def test_a_preset_is_hashable_and_can_be_pickled(preset):
    before = pickle.dumps(preset)
    assert preset.num_parameters > 0
    assert pickle.loads(pickle.dumps(preset)) == preset and hash(pickle.loads(before)) == hash(preset)
    assert pickle.dumps(preset) == before, "counting parameters does not change it"


@pytest.mark.parametrize("name", ["digits-small", "digits-tiny"])
def test_nine_in_ten_is_a_doubt_where_it_is_rare_among_digits(name: str):
    """A drawn house got 91 % for a 0; of 1,000 test digits at most one in twenty gets less than the threshold."""
    preset = PRESETS[name]
    assert not preset.is_confident(np.array([0.91] + 9 * [0.01]))
    digits = [held_out_digit(number) for number in range(0, NUM_TEST, 5)]
    found = vit_demo.explore_batch(digits, name, patch_size=7, batch_size=50)
    assert np.mean([ex.is_confident for ex in found]) >= 0.95
