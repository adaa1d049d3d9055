"""The cases that are compared: each gives a model the same weights, and returns the call to be timed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from benchmarks.explicit import Explicit
from vit_demo.methods import (
    Progress,
    attention_from,
    attnlrp,
    libra_fullgrad,
    local_surrogate,
    norm_attention,
    occlusion,
    relevance,
    rollout,
)
from vit_demo.trace import Trace, TracedViT

Run = Callable[[Tensor], Any]


def ours_plain(model: TracedViT) -> Run:
    """The forward pass alone, the baseline of all ratios."""
    return model


def ours_traced(model: TracedViT) -> Run:
    """The forward pass with a trace, from which any attention can be computed later."""
    return lambda images: model(images, Trace())


def ours_class_token_maps(model: TracedViT) -> Run:
    """The forward pass, then where the class token looks in every head of every block."""

    def run(images: Tensor) -> list[Tensor]:
        model(images, trace := Trace())
        return [attention_from(trace, block, 0) for block in range(trace.num_blocks)]

    return run


def ours_rollout(model: TracedViT) -> Run:
    """The forward pass, then the rollout of the class token over all blocks."""

    def run(images: Tensor) -> Tensor:
        model(images, trace := Trace())
        return rollout(trace)

    return run


def ours(method: Callable[[TracedViT, Tensor], Tensor]) -> Callable[[TracedViT], Run]:
    """The passes of a method, and its map, of the predicted class if it depends on one."""
    return lambda model: lambda images: method(model, images)


def ours_many(method: Callable[..., Tensor]) -> Callable[..., Run]:
    """A method of many passes with its defaults, of the predicted class."""

    def build(model: TracedViT, progress: Progress | None = None) -> Run:
        return lambda images: method(model, images, int(model(images).argmax()), progress=progress)

    return build


class EnoughPassesError(Exception):
    """Ends a method of many passes early."""


def few_passes(case: Callable[..., Run], batches: int = 3) -> Callable[[TracedViT], Run]:
    """A method of many passes that ends after a few batches of them, which need as much memory as all."""

    def build(model: TracedViT) -> Run:
        reports = iter(range(batches))

        def progress(done: int, total: int) -> None:
            if next(reports, None) is None:
                raise EnoughPassesError

        def run(images: Tensor) -> None:
            with suppress(EnoughPassesError):
                case(model, progress)(images)

        return run

    return build


def full_matrix_rollout(model: TracedViT) -> Run:
    """Rollout in the usual way: the matrices of all blocks, stored and multiplied; ``[B, N]``.

    As in the next case, the rows of each matrix sum to 1, where popular versions forget to.
    """

    def run(images: Tensor) -> Tensor:
        with Explicit() as explicit:
            model(images)
        eye = joint = torch.eye(explicit.matrices[0].shape[-1])
        for matrix in explicit.matrices:
            joint = (matrix.mean(1) + eye) / 2 @ joint
        return joint[:, 0]

    return run


def full_matrix_relevance(model: TracedViT) -> Run:
    """A pass and a backward that keep every matrix and its gradient, then the whole product: ``[B, N]``."""

    def run(images: Tensor) -> Tensor:
        with torch.inference_mode(False), torch.enable_grad(), Explicit() as explicit:
            logits = model(images.clone().requires_grad_())
            gradients = torch.autograd.grad(logits.amax(1).sum(), explicit.matrices)
        eye = joint = torch.eye(gradients[0].shape[-1])
        with torch.no_grad():
            for matrix, gradient in zip(explicit.matrices, gradients, strict=True):
                joint = joint + (matrix * gradient).clamp(min=0).mean(1) @ joint
        return (joint - eye)[:, 0]

    return run


def timm_plain(model: TracedViT) -> Any:
    """The forward pass of timm, on the fused kernel, without any attention."""
    from timm.models.vision_transformer import VisionTransformer

    config = model.config
    twin = VisionTransformer(
        config.image_size, config.patch_size, embed_dim=config.embed_dim, num_heads=config.num_heads
    )
    twin.load_state_dict(model.module.state_dict())
    return twin.eval()


def timm_extract(model: TracedViT) -> Run:
    """``timm.utils.AttentionExtract``, which needs the fused kernel off: all maps of all blocks."""
    from timm.utils import AttentionExtract

    twin = timm_plain(model)
    for block in twin.blocks:
        block.attn.fused_attn = False
    return AttentionExtract(twin)


def transformers_attentions(model: TracedViT) -> Run:
    """The ``ViTModel`` of transformers with ``output_attentions=True``, which needs its eager attention: all maps."""
    from transformers import ViTConfig as TheirConfig
    from transformers import ViTModel

    config = model.config
    shape = TheirConfig(
        image_size=config.image_size,
        patch_size=config.patch_size,
        hidden_size=config.embed_dim,
        num_hidden_layers=config.depth,
        num_attention_heads=config.num_heads,
        intermediate_size=int(config.embed_dim * config.mlp_ratio),
        layer_norm_eps=config.norm_eps,
        attn_implementation="eager",
    )
    twin = ViTModel(shape, add_pooling_layer=False)
    twin.load_state_dict(_in_transformers_words(model.module.state_dict()))
    twin.eval()
    return lambda images: twin(images, output_attentions=True)


def _in_transformers_words(state: dict[str, Tensor]) -> dict[str, Tensor]:
    words = {
        "cls_token": "embeddings.cls_token",
        "pos_embed": "embeddings.position_embeddings",
        "patch_embed.proj.": "embeddings.patch_embeddings.projection.",
        "blocks.": "layers.",
        "attn.proj.": "attention.o_proj.",
        "norm1.": "layernorm_before.",
        "norm2.": "layernorm_after.",
    }
    renamed: dict[str, Tensor] = {}
    for name, value in state.items():
        name = "layernorm." + name.removeprefix("norm.") if name.startswith("norm.") else name
        for ours, theirs in words.items():
            name = name.replace(ours, theirs)
        if "attn.qkv." in name:
            for letter, part in zip("qkv", value.chunk(3), strict=True):
                renamed[name.replace("attn.qkv.", f"attention.{letter}_proj.")] = part
        elif not name.startswith("head."):
            renamed[name] = value
    return renamed


def vit_pytorch_recorder(model: TracedViT) -> Run:
    """The ``Recorder`` of vit-pytorch: all maps. Its network differs slightly, so it has its own weights."""
    from vit_pytorch import ViT as TheirViT
    from vit_pytorch.recorder import Recorder

    config = model.config
    twin = TheirViT(
        image_size=config.image_size,
        patch_size=config.patch_size,
        num_classes=config.num_classes,
        dim=config.embed_dim,
        depth=config.depth,
        heads=config.num_heads,
        dim_head=config.head_dim,
        mlp_dim=int(config.embed_dim * config.mlp_ratio),
    )
    return Recorder(twin.eval())


@torch.inference_mode(False)
def grad_cam(model: TracedViT) -> Run:
    """The ``GradCAM`` of pytorch-grad-cam, of the predicted class at the last block's first norm."""
    from pytorch_grad_cam import GradCAM

    twin = timm_plain(model)
    cam = GradCAM(twin, [twin.blocks[-1].norm1], reshape_transform=_on_grid)

    @torch.inference_mode(False)
    def run(images: Tensor) -> object:
        return cam(images.clone(), None)

    return run


def captum_ablation(model: TracedViT) -> Run:
    """The ``FeatureAblation`` of captum, every patch once: painted grey, 32 pictures a pass."""
    from captum.attr import FeatureAblation

    twin, p = timm_plain(model), model.patch_size
    side = model.config.image_size // p
    patches = torch.arange(side * side).view(1, 1, side, side).repeat_interleave(p, 2).repeat_interleave(p, 3)
    ablation = FeatureAblation(twin)

    def run(images: Tensor) -> Tensor:
        target = int(twin(images).argmax())
        return ablation.attribute(images, target=target, feature_mask=patches, perturbations_per_eval=32)

    return run


def _on_grid(tokens: Tensor) -> Tensor:
    """From ``[B, 1 + N, D]`` to ``[B, D, rows, cols]``."""
    side = round((tokens.shape[1] - 1) ** 0.5)
    return tokens[:, 1:].unflatten(1, (side, side)).permute(0, 3, 1, 2)


CASES: dict[str, Callable[[TracedViT], Run]] = {
    "ours, plain forward": ours_plain,
    "ours, with a trace": ours_traced,
    "ours, with class-token maps of all blocks": ours_class_token_maps,
    "ours, with rollout": ours_rollout,
    "ours, with relevance": ours(relevance),
    "ours, with AttnLRP": ours(attnlrp),
    "ours, with Libra FullGrad+": ours(libra_fullgrad),
    "ours, with norm-based attention": ours(norm_attention),
    "full matrices, rollout": full_matrix_rollout,
    "full matrices, relevance": full_matrix_relevance,
    "timm, plain forward": timm_plain,
    "timm, AttentionExtract": timm_extract,
    "transformers, output_attentions": transformers_attentions,
    "vit-pytorch, Recorder": vit_pytorch_recorder,
    "ours, occlusion": ours_many(occlusion),
    "ours, local surrogate": ours_many(local_surrogate),
}
if find_spec("pytorch_grad_cam"):
    CASES["pytorch-grad-cam, GradCAM"] = grad_cam
if find_spec("captum"):
    CASES["captum, FeatureAblation"] = captum_ablation
BASELINE = next(iter(CASES))
MANY_PASSES = {"ours, occlusion", "ours, local surrogate", "captum, FeatureAblation"}
"""Hundreds of passes: measured at the first length only."""

PEAK_CASES = {
    **CASES,
    "ours, occlusion": few_passes(ours_many(occlusion)),
    "ours, local surrogate": few_passes(ours_many(local_surrogate)),
}
"""The cases whose peak memory is measured."""
