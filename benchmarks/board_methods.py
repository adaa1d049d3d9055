"""The maps of the faithfulness benchmark: every registered method, variants, other libraries' methods, and controls."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec

import torch
import torch.nn.functional as F
from torch import Tensor

from vit_demo.methods import METHODS, libra_fullgrad, relevance
from vit_demo.methods.attention_rows import attention_rows
from vit_demo.methods.targets import class_scores, forward_with_grad
from vit_demo.trace import TracedViT

Map = Callable[[TracedViT, Tensor, int], Tensor]
"""(model, image ``[1, C, height, width]``, class) -> ``[rows, cols]``."""


def maps() -> dict[str, Map]:
    """Every method with its defaults, variants that are worth a line, others' methods, and two controls."""

    def ours(compute: Callable[..., Tensor]) -> Map:
        return lambda model, images, target: compute(model, images, target)[0]

    found: dict[str, Map] = {"random": random_map, "edges": edges}
    found |= {name: ours(method.compute) for name, method in METHODS.items()}
    found["relevance, heads averaged first"] = ours(partial(relevance, average_heads_first=True))
    found["libra_fullgrad, tokens alone"] = ours(partial(libra_fullgrad, with_values=False))
    found["AttCAT"] = attcat
    if find_spec("pytorch_grad_cam"):
        found["Grad-CAM (pytorch-grad-cam)"] = grad_cam
    if find_spec("captum"):
        found["Shapley values (captum)"] = shapley_values
    return found


def random_map(model: TracedViT, images: Tensor, target: int) -> Tensor:
    """Nothing: a random value for each patch, the same for every picture."""
    return torch.rand(_grid(model, images), generator=torch.Generator().manual_seed(0))


def edges(model: TracedViT, images: Tensor, target: int) -> Tensor:
    """Where the picture has edges: the mean size of the differences between neighbouring pixels of each patch."""
    down, right = images.diff(dim=2).abs(), images.diff(dim=3).abs()
    size = (F.pad(down, (0, 0, 0, 1)) + F.pad(right, (0, 1))).mean(1)  # [1, height, width]
    return F.avg_pool2d(size, model.patch_size)[0]


def attcat(model: TracedViT, images: Tensor, target: int) -> Tensor:
    """AttCAT (Qiang et al., NeurIPS 2022): token times gradient, weighted by the attention that the token gets."""
    attention, _, tokens, gradients, prefix = _with_matrices(model, images, target)
    parts = zip(attention, tokens, gradients, strict=True)
    values = [a[0].mean((0, 1)) * (x * slope)[0].sum(1) for a, x, slope in parts]
    return sum(values)[prefix:].reshape(_grid(model, images))


def grad_cam(model: TracedViT, images: Tensor, target: int) -> Tensor:
    """Grad-CAM at the last block's first norm, as that library's ViT example has it."""
    from pytorch_grad_cam import GradCAM
    from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget

    def on_grid(tokens: Tensor) -> Tensor:
        patches = tokens[:, model.config.num_prefix_tokens :]
        return patches.unflatten(1, _grid(model, images)).permute(0, 3, 1, 2)

    model.requires_grad_(True)
    try:
        with GradCAM(model, [model.blocks[-1].norm1], reshape_transform=on_grid) as cam:
            pixels = cam(images.clone(), [ClassifierOutputTarget(target)])  # [1, height, width]
    finally:
        model.requires_grad_(False)
    return F.avg_pool2d(torch.from_numpy(pixels), model.patch_size)[0]


def shapley_values(model: TracedViT, images: Tensor, target: int) -> Tensor:
    """``ShapleyValueSampling`` of captum, two random orders of the patches, painted grey."""
    from captum.attr import ShapleyValueSampling

    rows, cols = _grid(model, images)
    p = model.patch_size
    patches = torch.arange(rows * cols).view(1, 1, rows, cols).repeat_interleave(p, 2).repeat_interleave(p, 3)
    sampling = ShapleyValueSampling(model)
    found = sampling.attribute(images, target=target, feature_mask=patches, n_samples=2, perturbations_per_eval=32)
    return found[0, 0, ::p, ::p]


def _grid(model: TracedViT, images: Tensor) -> tuple[int, int]:
    return images.shape[2] // model.patch_size, images.shape[3] // model.patch_size


def _with_matrices(
    model: TracedViT, images: Tensor, target: int
) -> tuple[list[Tensor], tuple[Tensor, ...], list[Tensor], tuple[Tensor, ...], int]:
    """Attention ``[1, H, N, N]`` and tokens before each block, each with its gradient; and the prefix tokens."""
    matrices: list[Tensor] = []

    def attention_fn(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        matrices.append(attention_rows(q, k))
        return matrices[-1] @ v

    with torch.enable_grad():
        logits, trace = forward_with_grad(model, images, attention_fn=attention_fn)
        tokens = trace.tokens[:-1]
        slopes = torch.autograd.grad(class_scores(logits, target).sum(), [*matrices, *tokens])
    kept = [[one.detach() for one in some] for some in (matrices, tokens)]
    return kept[0], slopes[: len(matrices)], kept[1], slopes[len(matrices) :], trace.num_prefix_tokens
