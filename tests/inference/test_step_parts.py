"""Step by step in networks of every library: their parts, found by numbers, against explicit ones and parameters."""

from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_demo.errors import InputError
from vit_demo.features import logit_lens
from vit_demo.features.similarity import MAX_ERROR
from vit_demo.inference.step_parts import Event, branches
from vit_demo.inference.steps import describe_block, describe_network, describe_patch
from vit_demo.model import ViT
from vit_demo.trace import Trace, TracedViT, adapt

from ..trace.networks import NETWORKS, eva, of_this_package, timm_network, timm_vit


def with_block(module: str, name: str, network: str, **options: Any) -> nn.Module:
    timm = pytest.importorskip("timm")
    return timm_network(network, block_fn=getattr(getattr(timm.models, module), name), **options)


OTHERS = {
    "ours no classes": of_this_package(num_registers=2, layer_scale=0.1, num_classes=0, pos_embed_prefix=False),
    "ours notebook": of_this_package(projection="per_head", pos_embed="sincos", final_norm=False),
    "ours flexible": of_this_package(patch_size=16, pos_embed_grid=8),
    "timm deit3": timm_vit(init_values=0.1, no_embed_class=True),
    "timm dinov3": eva(
        use_rot_pos_emb=True, rope_type="dinov3", use_abs_pos_emb=False, init_values=0.1, num_reg_tokens=2,
        global_pool="avg", use_fc_norm=False,
    ),
    "timm no classes, mean": timm_vit(num_classes=0, global_pool="avg", fc_norm=False, reg_tokens=2),
    "timm res-post-norm": lambda: with_block(
        "vision_transformer_relpos", "ResPostRelPosBlock", "vision_transformer_relpos.VisionTransformerRelPos",
        class_token=False, init_values=0.1,
    ),
    "timm parallel": lambda: with_block(
        "vision_transformer", "ParallelScalingBlock", "vision_transformer.VisionTransformer", init_values=0.1
    ),
}  # fmt: skip
SHOWN = NETWORKS | OTHERS
UNSEEN = "vit-pytorch simple"
KEPT = torch.tensor([[i for i in range(16) if i not in (0, 5)]])
PATCH = 6


@pytest.fixture(params=[name for name in SHOWN if name != UNSEEN], scope="module")
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def model(name: str) -> TracedViT:
    return adapt(SHOWN[name](), 32)


@pytest.fixture(scope="module")
def images() -> Tensor:
    return torch.randn(1, 3, 32, 32, generator=torch.Generator().manual_seed(3))


def spied(model: TracedViT, images: Tensor) -> tuple[list[Tensor], Trace]:
    """The tokens before the first block and after each, and the trace of a pass that nothing else watches."""
    tokens: list[Tensor] = []

    def see(_: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        if not tokens:
            tokens.append(args[0] if args else kwargs["hidden_states"])
        tokens.append(output[0] if isinstance(output, tuple) else output)

    handles = [block.register_forward_hook(see, with_kwargs=True) for block in model.blocks]
    with torch.inference_mode(), Trace() as trace:
        model.module(images, **{"patch_size": 8} if isinstance(model.module, ViT) else {})
    for handle in handles:
        handle.remove()
    return tokens, trace


@pytest.fixture(scope="module")
def seen(model: TracedViT, images: Tensor) -> tuple[list[Tensor], Trace]:
    return spied(model, images)


@pytest.fixture(scope="module")
def network(model: TracedViT, images: Tensor) -> tuple[Any, Any]:
    return describe_network(model, images, patch_size=8)


@pytest.fixture(scope="module")
def patch(model: TracedViT, images: Tensor) -> Any:
    return describe_patch(model, images, PATCH, patch_size=8)


@pytest.fixture(params=[0, 2], scope="module")
def block(request: pytest.FixtureRequest) -> int:
    return request.param


@pytest.fixture(scope="module")
def found(model: TracedViT, images: Tensor, block: int) -> Any:
    return describe_block(model, images, PATCH, block, 1, patch_size=8)


def test_both_residuals_lead_from_the_token_before_to_the_one_after(
    name: str, model: TracedViT, block: int, found: Any, seen: tuple[list[Tensor], Trace]
) -> None:
    tokens, _ = seen
    token = model.config.num_prefix_tokens + PATCH
    torch.testing.assert_close(found["before"], tokens[block][0, token])
    torch.testing.assert_close(found["after"], tokens[block + 1][0, token])
    assert ("attention" in found) == ("mlp" in found) == ("hidden" in found) == (name != "timm parallel")
    if name == "timm parallel":
        return
    torch.testing.assert_close(found["before"] + found["attention"], found["between"])
    torch.testing.assert_close(found["between"] + found["mlp"], found["after"])


def test_scores_and_shares_are_those_of_whole_matrices(
    model: TracedViT, block: int, found: Any, seen: tuple[list[Tensor], Trace]
) -> None:
    head, token = 1, model.config.num_prefix_tokens + PATCH
    _, trace = seen
    q, k, v = (x[block][0].double() for x in (trace.q, trace.k, trace.v))
    scores = q @ k.mT * q.shape[-1] ** -0.5  # [H, N, N]
    weights = scores.softmax(-1)
    torch.testing.assert_close(found["scores"].double(), scores[head, token], atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(found["all_weights"].double(), weights[:, token], atol=1e-5, rtol=1e-4)
    assert torch.equal(found["weights"], found["all_weights"][head])
    output = (weights @ v)[:, token]
    torch.testing.assert_close(found["concatenated"].double(), output.flatten(), atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(found["head_output"].double(), output[head], atol=1e-5, rtol=1e-4)
    assert ("query" in found) == (q.shape[2] == v.shape[2])
    assert found["keyed"].tolist() == weights[head, token].argsort(descending=True)[:4].tolist()
    torch.testing.assert_close(found["values"].double(), v[head, found["keyed"]])
    if "query" in found:
        torch.testing.assert_close(found["keys"].double(), k[head, found["keyed"]])
        products = found["query"] @ found["keys"].T / found["query"].numel() ** 0.5
        torch.testing.assert_close(products, found["scores"][found["keyed"]], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(
    "name", ["ours", "timm vit", "timm deit3", "timm eva02", "timm beit", "timm dinov3"], indirect=True, scope="module"
)
def test_the_mlp_is_that_of_the_modules(name: str, model: TracedViT, block: int, found: Any, network: Any) -> None:
    facts, part = network[0], model.blocks[block]
    scale = part.ls2.gamma if name in ("ours", "timm deit3") else getattr(part, "gamma_2", None)
    scale = 1 if scale is None else scale
    with torch.inference_mode():
        normed = part.norm2(found["between"])
        added = part.mlp(normed[None, None])[0, 0]
        if not facts["gated"]:
            torch.testing.assert_close(found["hidden"], F.gelu(part.mlp.fc1(normed)))
        torch.testing.assert_close(part.mlp.fc2(found["hidden"]), added)
        torch.testing.assert_close(found["mlp"], scale * added)
    assert facts["hidden"] == len(found["hidden"]) == part.mlp.fc2.in_features
    assert facts["gated"] == (name == "timm eva02")


POSITIONS = {
    "timm vit": "pos_embed",
    "timm siglip": "pos_embed",
    "timm deit3": "pos_embed",
    "timm clip": "pos_embed",
    "timm eva02": "pos_embed",
    "torchvision": "encoder.pos_embedding",
    "own": "place",
    "transformers ViT": "vit.embeddings.position_embeddings",
    "transformers Dinov2": "dinov2.embeddings.position_embeddings",
    "transformers CLIPVision": "position_embedding.weight",
    "transformers SiglipVision": "position_embedding.weight",
}


def test_positions_are_the_networks_own_or_none(
    name: str, model: TracedViT, network: Any, patch: Any, seen: tuple[list[Tensor], Trace]
) -> None:
    (facts, shared), found, (tokens, _) = network, patch, seen
    prefix = model.config.num_prefix_tokens
    torch.testing.assert_close(found["token"], tokens[0][0, prefix + PATCH])
    assert ("class_token" in found) == model.config.class_token
    if "class_token" in found:
        torch.testing.assert_close(found["class_token"], tokens[0][0, 0])
    assert ("position" in found) == (facts["positions"] not in ("none", "unseen"))
    table = model.module.pos_embed_for((4, 4)) if isinstance(model.module, ViT) else None
    if (ending := POSITIONS.get(name)) is not None:
        table = next(x for key, x in model.module.named_parameters() if key.endswith(ending))
    if table is not None:
        table = table.detach().reshape(-1, 24)[-16:]
        torch.testing.assert_close(found["position"], table[PATCH], atol=1e-5, rtol=1e-4)
        similarity = F.cosine_similarity(table[:, None], table[None], dim=2)
        compressed = shared["positions"].float()
        torch.testing.assert_close(compressed @ compressed.T, similarity, atol=MAX_ERROR, rtol=0)
    whole = found["embedded"] + found.get("position", 0)
    if "CLIP" in name or "clip" in name:
        assert facts["positions"] == "normed"
        norm = next(x for key, x in model.module.named_modules() if key.endswith(("norm_pre", "pre_layrnorm")))
        whole = norm(whole)
    torch.testing.assert_close(whole, found["token"], atol=1e-5, rtol=1e-4)
    if any(word in name for word in ("rope", "dinov3", "DINOv3", "beit", "Beit", "relpos", "res-post")):
        assert facts["positions"] == "none"


def test_positions_behind_a_norm_of_the_patches_are_unseen(images: Tensor) -> None:
    layers = pytest.importorskip("timm").layers
    make = timm_vit(
        class_token=False, global_pool="avg", embed_layer=partial(layers.PatchEmbed, norm_layer=nn.LayerNorm)
    )
    facts, found = describe_network(adapt(make(), 32), images, patch_size=8)
    assert facts["positions"] == "unseen" and "positions" not in found


def test_filters_give_the_patch_embedding_by_a_plain_sum(images: Tensor, network: Any, patch: Any) -> None:
    (_, shared), found = network, patch
    assert torch.equal(found["pixels"], images[0, :, 8:16, 16:24])
    sums = (shared["kernel"] * found["pixels"]).sum((1, 2, 3)) + shared["bias"]
    torch.testing.assert_close(found["embedded"][shared["filters"]], sums, atol=1e-5, rtol=1e-4)


def test_the_last_depth_is_the_networks_own_output(
    name: str, model: TracedViT, images: Tensor, network: Any, seen: tuple[list[Tensor], Trace]
) -> None:
    _, found = network
    with torch.inference_mode():
        output = model(images, patch_size=8)[0]
        tokens = model.final_norm(seen[0][-1])[0]
        if isinstance(vit := model.module, ViT):
            pooled = vit.forward_head(vit.forward_features(images, patch_size=8), pre_logits=True)[0]
            torch.testing.assert_close(found["pooled"], pooled)
    if not model.config.num_classes:
        torch.testing.assert_close(found["pooled"], output)
        assert found["depth_similarity"].shape == (4,) and found["depth_similarity"][-1].item() == pytest.approx(1)
        assert ("alike" in found) == (name in ("ours no classes", "transformers DINOv3ViT", "timm no classes, mean"))
        if "alike" in found:
            patches = tokens[model.config.num_prefix_tokens :]
            torch.testing.assert_close(found["alike"], F.cosine_similarity(patches, output[None]))
        return
    depths = logit_lens(model, images, patch_size=8)[0].softmax(-1)
    torch.testing.assert_close(found["depth_top"], depths.max(-1).values)
    assert found["depth_class"].tolist() == depths.argmax(-1).tolist() and len(depths) == 4
    probabilities = output.softmax(0)
    torch.testing.assert_close(depths[-1], probabilities)
    assert found["classes"].tolist() == output.argsort(descending=True)[:5].tolist()
    torch.testing.assert_close((found["logits"] - found["logsumexp"]).exp(), probabilities[found["classes"]])
    assert ("pooled" in found) == (name != "timm distilled"), "whose two heads read two tokens"
    if "pooled" in found:
        with torch.inference_mode():
            torch.testing.assert_close(model.head(found["pooled"]), output)


def test_dropped_patches_have_no_token(name: str, model: TracedViT, images: Tensor, patch: Any) -> None:
    _, shared = describe_network(model, images, patch_size=8, kept_patches=KEPT)
    assert (shared["contrast"] == 0).nonzero().flatten().tolist() == [0, 5]
    kept = describe_patch(model, images, PATCH, patch_size=8, kept_patches=KEPT)
    torch.testing.assert_close(kept["token"], patch["token"])
    block = describe_block(model, images, PATCH, 0, 0, patch_size=8, kept_patches=KEPT)
    torch.testing.assert_close(block["before"], kept["token"])
    assert block["weights"].shape == (14 + model.config.num_prefix_tokens,)
    with torch.inference_mode():
        output = model(images, patch_size=8, kept_patches=KEPT)[0]
    if model.config.num_classes:
        torch.testing.assert_close(shared["logits"], output.sort(descending=True)[0][:5])
    block = describe_block(model, images, PATCH, 2, 0, patch_size=8, kept_patches=KEPT)
    if name != "timm parallel":
        torch.testing.assert_close(block["before"] + block["attention"] + block["mlp"], block["after"])


@pytest.mark.parametrize("make", [
    NETWORKS[UNSEEN],
    lambda: with_block("vision_transformer", "ParallelThingsBlock", "vision_transformer.VisionTransformer"),
], ids=["blocks are not modules", "two attentions a block"])  # fmt: skip
def test_blocks_without_tokens_get_a_sentence(make: Any, images: Tensor) -> None:
    with pytest.raises(InputError, match="one attention each: choose another model"):
        describe_network(adapt(make(), 32), images, patch_size=8)


def test_only_an_exact_sum_is_taken_for_a_residual() -> None:
    before, attention, mlp = torch.randn(3, 8)
    part, linear = nn.Identity(), nn.Linear(8, 8)
    between, after = before + attention, before + attention + mlp
    events = [
        Event(part, False, attention),
        Event(part, True, between),
        Event(linear, True, mlp),
        Event(linear, False, mlp),
    ]
    found, gated = branches(events, before, after)
    assert torch.equal(found["attention"], attention) and torch.equal(found["mlp"], mlp) and not gated
    assert torch.equal(found["hidden"], mlp)
    found, _ = branches(events, before, F.layer_norm(after, (8,)))  # a norm after the sum: the MLP adds something else
    assert "mlp" not in found and "attention" in found
    assert branches(events[1:], before, after)[0] == {}, "what left before attention is not its"
