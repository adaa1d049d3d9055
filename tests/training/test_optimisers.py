import pytest
import torch

from vit_demo.model import ViT, ViTConfig
from vit_demo.training.optimisers import make_optimisers
from vit_demo.training.recipes import Recipe
from vit_demo.training.student import Student

SHAPE = ViTConfig(image_size=16, patch_size=8, num_classes=3, embed_dim=16, depth=2, num_heads=2)
ANY = {"patch_size_weights": {8: 1.0}, "epochs": 1}


@pytest.mark.parametrize("optimiser", ["adamw", "muon", "adam"])
def test_every_parameter_is_moved_by_exactly_one_optimiser_and_vectors_are_not_decayed(optimiser):
    torch.manual_seed(0)
    model = ViT(SHAPE)
    found = make_optimisers(
        model, Recipe(patch_size_weights={8: 1.0}, epochs=1, optimiser=optimiser, weight_decay=0.1), 1e-3
    )
    groups = [group for one in found for group in one.param_groups]
    moved = [id(p) for group in groups for p in group["params"]]
    assert sorted(moved) == sorted(id(p) for p in model.parameters())
    if optimiser != "adam":
        assert all(p.ndim > 1 for group in groups if group["weight_decay"] for p in group["params"])
        assert all(p.ndim <= 1 for group in groups if not group["weight_decay"] for p in group["params"])


def test_muon_moves_a_block_s_matrix_alike_in_all_directions_and_adamw_does_not():
    """One step from the same gradient, of low rank: Muon's update has singular values near one another."""
    spread = {}
    for optimiser in ("adamw", "muon"):
        torch.manual_seed(0)
        model = ViT(SHAPE)
        weight = model.blocks[0].mlp.fc1.weight
        before = weight.detach().clone()
        weight.grad = torch.randn(64, 16) @ torch.diag(torch.logspace(0, -2, 16)) @ torch.randn(16, 16)
        for one in make_optimisers(model, Recipe(**ANY, optimiser=optimiser, weight_decay=0.0), 1e-3):
            one.step()
        values = torch.linalg.svdvals(weight.detach() - before)
        spread[optimiser] = float(values[0] / values[-4])
    assert spread["muon"] < 3 < spread["adamw"]


def test_muon_moves_a_student_s_blocks_and_not_the_maps_that_guess():
    student = Student(ViT(SHAPE), 5)
    _, muon = make_optimisers(student, Recipe(**ANY, optimiser="muon"), 1e-3)
    matrices = [p for p in student.vit.blocks.parameters() if p.ndim == 2]
    assert {id(p) for group in muon.param_groups for p in group["params"]} == {id(p) for p in matrices}
