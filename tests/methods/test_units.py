"""From which value on a map shows something that matters."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import vit_demo
from vit_demo.methods import METHODS
from vit_demo.methods.units import FLOORS
from vit_demo.web.catalog.example_digits import example_picture


def test_every_floor_is_of_a_unit_that_a_method_has():
    assert FLOORS.keys() <= {method.unit for method in METHODS.values()}
    assert replace(METHODS["attention"], unit="a unit of a new method").floor.at(50) == 0


def test_the_reasons_are_true():
    logits = torch.randn(1000, 10, dtype=torch.float64) * 3
    changed = logits.clone()
    changed[:, 0] += FLOORS["logit"].value
    assert (changed.softmax(1) - logits.softmax(1)).abs().max() <= 0.0025
    assert np.exp(FLOORS["log-probability"].value) == pytest.approx(1.01, abs=1e-4)
    even = torch.full((1, 50), 1 / 50)
    assert even.max() >= FLOORS["share of attention"].at(50) - 1e-6


@pytest.fixture(scope="module")
def seven():
    return vit_demo.explore(example_picture(7), "digits-small", patch_size=4)


def test_occlusion_of_a_sure_seven_is_below_its_floor_and_faint(seven):
    values = seven.heatmap("occlusion")
    assert np.abs(values).max() < METHODS["occlusion"].floor.value
    plain, faint = (np.asarray(seven.overlay(one), float) for one in (np.asarray(values), values))
    assert (faint == np.asarray(seven.overlay(np.asarray(values), method="occlusion"))).all()
    paper = np.asarray(seven.overlay(0 * values), float)
    assert np.abs(faint - paper).max() < 0.4 * np.abs(plain - paper).max()


def test_only_methods_with_a_sign_have_values_below_zero(seven):
    for name, method in METHODS.items():
        options = {"budget": 6} if name == "local_surrogate" else {}
        values = seven.heatmap(name, **options)
        assert method.signed or values.min() >= 0, name
