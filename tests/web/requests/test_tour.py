"""The guided tour's requests: against the network itself, with hostile fields, and for models of other shapes."""

from __future__ import annotations

import base64
import json
import re
import textwrap
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import vit_demo
from vit_demo.inference import networks
from vit_demo.inference.steps import describe_block, describe_network, describe_patch
from vit_demo.model import ViT, vit
from vit_demo.service.engine import _engines
from vit_demo.trace import OwnViT, TracedViT, attention_mode
from vit_demo.web.catalog.example_digits import example_picture
from vit_demo.web.requests import tour
from vit_demo.weights import PRESETS

from ...replies import complete

WHOLE_NUMBERS = ("filters", "keyed", "classes", "depth_class")


@pytest.fixture(scope="module")
def source(source: dict[str, Any]) -> dict[str, Any]:
    return {**source, "patch_size": 4}


def numbers(source: dict[str, Any], kind: str, **fields: Any) -> dict[str, Any]:
    reply = complete({"kind": kind, "source": source, **fields})["result"]

    def decoded(name: str, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        dtype = "<i4" if name in WHOLE_NUMBERS else "<f2" if name == "positions" else "<f4"
        return np.frombuffer(base64.b64decode(value), dtype)

    return {name: decoded(name, value) for name, value in reply.items()}


def test_the_numbers_are_those_of_the_network(source: dict[str, Any]) -> None:
    ex = vit_demo.explore(example_picture(3), "digits-tiny", patch_size=4)
    model = vit_demo.load("digits-tiny", patch_size=4, device="cpu")
    shared = numbers(source, "steps")
    assert shared["labels"]["classes"] == [label for label, _ in ex.top(5)]
    assert shared["labels"]["depth_class"] == [ranking[0][0] for ranking in ex.logit_lens()]
    np.testing.assert_allclose(shared["logits"], np.sort(ex.logits)[::-1][:5], atol=1e-4)
    assert shared["network"]["width"] == model.config.embed_dim and shared["network"]["input_size"] == [28, 28]
    patch = numbers(source, "steps_patch", query=24)
    np.testing.assert_array_equal(patch["pixels"].reshape(1, 4, 4), ex.pixels[0, :, 12:16, 12:16])
    with torch.inference_mode():
        tokens = model.embed(ex.pixels, (7, 7), 4)[0]
    np.testing.assert_allclose(patch["token"], tokens[25], atol=1e-5)
    block = numbers(source, "steps_block", query=24, block=3, head=2)
    np.testing.assert_allclose(block["weights"][1:].reshape(7, 7), ex.attention(3, 2, (3, 3)), atol=1e-5)
    class_token = numbers(source, "steps_block", block=3, head=2)
    np.testing.assert_allclose(class_token["weights"][1:].reshape(7, 7), ex.attention(3, 2), atol=1e-5)


def test_replies_differ_by_patch_block_and_head_and_are_small(source: dict[str, Any]) -> None:
    seen = set()
    for query, block, head in [(None, 0, 0), (8, 0, 0), (8, 1, 0), (8, 1, 1)]:
        seen.add(numbers(source, "steps_block", query=query, block=block, head=head)["scores"].tobytes())
    assert len(seen) == 4
    for kind in ("steps", "steps_patch", "steps_block"):
        assert len(json.dumps(complete({"kind": kind, "source": source, "query": 8}))) < 60_000


@pytest.mark.parametrize(
    ("kind", "fields", "message"),
    [
        ("steps_patch", {}, "No patch is chosen"),
        ("steps_patch", {"query": 49}, "no patch (7, 0)"),
        ("steps_patch", {"query": -1}, "must be a whole number"),
        ("steps_block", {"query": 10**9}, "must be a whole number"),
        ("steps_block", {"query": 1e5}, "no patch (14285, 5)"),
        ("steps_block", {"query": True}, "must be a whole number"),
        ("steps_block", {"block": 6}, "no block 6"),
        ("steps_block", {"head": 4}, "no head 4"),
        ("steps_block", {"head": "first"}, "must be a whole number"),
    ],
)
def test_an_invalid_field_gets_a_sentence(source: dict[str, Any], kind: str, fields: Any, message: str) -> None:
    error = complete({"kind": kind, "source": source, **fields})["error"]
    assert message in error and error.endswith(".")


def test_a_dropped_patch_has_no_steps(source: dict[str, Any]) -> None:
    dropped = {**source, "dropped": [24]}
    for kind in ("steps_patch", "steps_block"):
        assert "was dropped" in complete({"kind": kind, "source": dropped, "query": 24})["error"]
    block = numbers(dropped, "steps_block", query=25)
    assert len(block["weights"]) == 49
    assert numbers(dropped, "steps")["contrast"][24] == 0


@pytest.mark.parametrize(
    "changes",
    [
        {"num_classes": 0, "num_registers": 4, "layer_scale": 0.1, "pos_embed_prefix": False, "pos_embed_grid": 7},
        {"pool": "mean", "class_token": False},
        {"pool": "cls+mean", "projection": "per_head", "pos_embed": "sincos"},
    ],
    ids=["no classes, registers", "no class token", "two vectors, heads apart"],
)
def test_models_of_other_shapes(
    source: dict[str, Any], changes: dict[str, Any], empty_replies: None, monkeypatch: Any
) -> None:
    tiny = PRESETS["digits-tiny"]
    config = replace(tiny.config, depth=2, embed_dim=16, num_heads=2, **changes)
    preset = replace(tiny, config=config, labels=tiny.labels if config.num_classes else ())
    monkeypatch.setitem(PRESETS, "digits-tiny", preset)
    monkeypatch.setattr(networks, "load_model", lambda *_: OwnViT(ViT(config).eval()))
    _engines.clear()
    try:
        shared = numbers(source, "steps")
        assert ("logits" in shared) == bool(config.num_classes)
        assert ("alike" in shared) == (not config.num_classes)
        assert len(shared["pooled"]) == config.num_features
        assert len(numbers(source, "steps_patch", query=3)["token"]) == 16
        assert len(numbers(source, "steps_block", query=3)["weights"]) == 49 + config.num_prefix_tokens
        from_class_token = complete({"kind": "steps_block", "source": source})
        assert ("no class token" in from_class_token.get("error", "")) == (not config.class_token)
    finally:
        _engines.clear()


def run_excerpt(code: str, wanted: str = "", **names: Any) -> Any:
    """What an excerpt returns, or the value of a variable, if it is the body of a function with these names."""
    ending = f"\nreturn {wanted}" if wanted else ""
    source = f"def excerpt({', '.join(names)}):\n" + textwrap.indent(code + ending, "    ")
    scope = {**vars(vit), **vars(attention_mode)}
    exec(source, scope)
    return scope["excerpt"](**names)


@torch.inference_mode()
def test_the_code_of_each_step_gives_the_numbers_of_the_next(network: Callable[..., TracedViT]) -> None:
    traced, images = network(), torch.randn(1, 3, 16, 16)
    model: Any = traced.module
    codes = [[excerpt["code"] for excerpt in excerpts] for excerpts in tour.step_code()]
    embedded = run_excerpt(codes[0][0], "x", self=model, images=images, patch_size=4)
    tokens = run_excerpt(codes[1][0], self=model.patch_embed, images=images, patch_size=4)
    x = run_excerpt(codes[2][0], "x", self=model, x=tokens, grid=(4, 4))
    assert torch.equal(x, embedded)
    patch = describe_patch(traced, images, 5, patch_size=4)  # the token 6, after the class token
    assert torch.equal(patch["embedded"], tokens[0, 5]) and torch.equal(patch["token"], x[0, 6])
    found = describe_block(traced, images, 5, 0, 1, patch_size=4)
    block: Any = model.blocks[0]
    normed = block.norm1(x)
    q, k, v = run_excerpt(codes[3][0], "(q, k, v)", self=block.attn, x=normed)
    mixed = run_excerpt(codes[3][1], q=q, k=k, v=v)
    scores = run_excerpt(codes[3][2], q=q, k=k)
    weights = run_excerpt(codes[3][3], q=q, k=k)
    torch.testing.assert_close(weights, scores.softmax(-1))
    torch.testing.assert_close(weights @ v, mixed)
    torch.testing.assert_close(found["scores"], scores[0, 1, 6])
    torch.testing.assert_close(found["all_weights"], weights[0, :, 6])
    assert torch.equal(found["query"], q[0, 1, 6]) and torch.equal(found["head_output"], mixed[0, 1, 6])
    assert torch.equal(run_excerpt(codes[4][0], self=block.attn, x=mixed), block.attn(normed))
    between = run_excerpt(codes[4][1], "x", self=block, x=x)
    torch.testing.assert_close(between, x + block.attn(normed))
    inside = block.norm2(between)
    assert torch.equal(found["between"], between[0, 6]) and torch.equal(found["after"], block(x)[0, 6])
    assert torch.equal(run_excerpt(codes[5][0], self=block.mlp, x=inside), block.mlp(inside))
    assert torch.equal(run_excerpt(codes[5][1], "x", self=block, x=between), block(x))
    encoded = run_excerpt(codes[6][0], self=model, x=x)
    assert torch.equal(encoded, model.forward_features(images, patch_size=4))
    pooled = run_excerpt(codes[7][0], self=model, x=encoded, pre_logits=True)
    assert torch.equal(model.head(pooled), model(images, patch_size=4))
    assert torch.equal(describe_network(traced, images, patch_size=4)[1]["pooled"], pooled[0])


def test_the_shapes_in_the_guide_are_those_of_tensors_that_exist() -> None:
    model = vit_demo.load("digits-small", patch_size=4, device="cpu")
    seen: set[str] = set()

    def see(*tensors: object) -> None:
        seen.update(str(list(tensor.shape)) for tensor in tensors if isinstance(tensor, torch.Tensor))

    for module in model.modules():
        module.register_forward_hook(lambda _, given, returned: see(*given, returned))
    with torch.inference_mode(), vit_demo.Trace() as trace:
        model(torch.randn(1, 1, 28, 28))
    see(trace.q[0], attention_mode.attention_scores(trace.q[0], trace.k[0]))
    guide = (Path(__file__).parents[3] / "docs" / "guided.md").read_text(encoding="utf-8")
    steps_of_guide = [line for line in guide.splitlines() if re.match(r"\| \d\. ", line)]
    assert len(steps_of_guide) == 8
    assert set(re.findall(r"`(\[1, .*?\])`", "\n".join(steps_of_guide))) <= seen


def test_a_line_that_is_gone_stops_no_page() -> None:
    assert tour._excerpt(ViT.embed, "prefix =", "x = magic")["code"].startswith("prefix = [")
