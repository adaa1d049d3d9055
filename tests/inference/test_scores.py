"""What logits become: softmax, sigmoid or nothing, in memory and from folders, against plain loops."""

import json

import numpy as np
import pytest
import torch
import transformers
from torch import nn

import vit_demo
from vit_demo.errors import InputError, LabelError
from vit_demo.scores import as_text
from vit_demo.trace import adapt
from vit_demo.web.notebook import to_html
from vit_demo.web.requests.payload import payload

from ..trace.networks import NETWORKS, Own, own, timm_network

PIXELS = torch.randn(3, 32, 32, generator=torch.Generator().manual_seed(0))
NAMES = ["ant", "bee", "cat", "dog", "eel"]
SCORES = {
    "softmax": lambda logits: logits.softmax(-1),
    "sigmoid": lambda logits: 1 / (1 + (-logits).exp()),
    "none": lambda logits: logits,
}


def transformers_vit(labels: int = 3, **options) -> nn.Module:
    torch.manual_seed(0)
    config = transformers.ViTConfig(
        image_size=32, patch_size=8, hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=48,
        num_labels=labels, initializer_range=0.4, **options,
    )  # fmt: skip
    return transformers.ViTForImageClassification(config).eval()


def logits_of(module: nn.Module, pixels: torch.Tensor = PIXELS, kept=None) -> torch.Tensor:
    """In float64 where a subset is asked for."""
    with torch.no_grad():
        if kept is None:
            found = module(pixels[None])
            return (found if isinstance(found, torch.Tensor) else found["logits"])[0]
        return adapt(module, 32)(pixels[None], kept_patches=torch.tensor([kept]))[0].double()


@pytest.mark.parametrize(
    ("score", "text"),
    [(0, "<0.1 %"), (9e-4, "<0.1 %"), (0.001, "0.1 %"), (0.9994, "99.9 %"), (0.9996, ">99.9 %"), (1, "100.0 %")],
)
def test_no_score_is_a_rounded_0_or_100(score, text):
    assert as_text(score, "softmax") == as_text(score, "sigmoid") == text


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        (transformers_vit, "softmax"),
        (lambda: transformers_vit(problem_type="single_label_classification"), "softmax"),
        (lambda: transformers_vit(problem_type="multi_label_classification"), "sigmoid"),
        (lambda: transformers_vit(labels=2, problem_type="regression"), "none"),
        (lambda: nn.DataParallel(transformers_vit(problem_type="multi_label_classification")), "sigmoid"),
        (lambda: transformers_vit(labels=1), "sigmoid"),
        (lambda: timm_network("vision_transformer.VisionTransformer", num_classes=1), "sigmoid"),
        (own, "softmax"),
    ],
)
def test_auto_is_what_the_pipeline_of_transformers_does(module, expected):
    module = module()
    ex = vit_demo.explore(PIXELS, module)
    probabilities = SCORES[expected](logits_of(module)).numpy()
    assert ex.preset.scores == expected
    np.testing.assert_allclose(ex.probabilities, probabilities, atol=1e-6)
    best = int(probabilities.argmax())
    assert ex.top(1) == [(ex.labels[best], pytest.approx(probabilities[best], abs=1e-6))]
    assert ex.is_confident == (expected != "none" and probabilities[best] >= 0.5)
    assert ("%" in repr(ex)) == (expected != "none")


def headless() -> dict[str, nn.Module]:
    """Networks whose outputs are no classes, as DINO, dinov2 and open_clip build them."""

    class Clip(Own):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.proj, self.head = nn.LayerNorm(24), nn.Parameter(torch.randn(24, 16)), nn.Identity()

        def forward(self, images):
            return self.norm(super().forward(images)) @ self.proj

    class Trunk(Own):
        def __init__(self) -> None:
            super().__init__()
            self.head = nn.Sequential()
            self.head.add_module("proj", nn.Linear(24, 16))

    torch.manual_seed(0)
    dino, bare, pooled = (
        Own(),
        Own(),
        timm_network("vision_transformer.VisionTransformer", global_pool="map", num_classes=0),
    )
    dino.head, bare.head = nn.LayerNorm(24), nn.Identity()
    return {
        "norm": dino,
        "nothing after the blocks": bare,
        "projection": Clip(),
        "proj of a trunk": Trunk(),
        "wrapped": nn.Sequential(pooled, nn.Identity()),
    }


@pytest.mark.parametrize("name", headless())
def test_embeddings_are_no_classes_unless_one_says_so(name):
    module = headless()[name].eval()
    ex = vit_demo.explore(PIXELS, module)
    count = len(logits_of(module))
    assert ex.labels == () and ex.probabilities.size == 0 and ex.top() == [] and not ex.is_confident
    with pytest.raises(LabelError, match="no classes"):
        ex.relevance()
    named = vit_demo.explore(PIXELS, module, labels=list(map(str, range(count))))
    np.testing.assert_allclose(named.probabilities, logits_of(module).softmax(0), atol=1e-6)
    assert vit_demo.explore(PIXELS, module, scores="none").logits.shape == (count,)
    assert named.relevance("1").shape == (4, 4)


def test_heads_of_many_kinds_are_found():
    for name, make in NETWORKS.items():
        has_none = any(kind in name for kind in ("DINOv3", "CLIP", "Siglip"))
        assert (vit_demo.explore(PIXELS, make()).labels == ()) == has_none, name
    module = own()
    nn.utils.parametrizations.weight_norm(module.head)
    assert len(vit_demo.explore(PIXELS, module).labels) == 5


class Temperature(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, x):
        return x * self.scale


@pytest.mark.parametrize("last", [Temperature, lambda: nn.BatchNorm1d(5), lambda: nn.BatchNorm1d(5, affine=False)])
def test_a_head_may_be_followed_by_a_scale(last):
    module = own()
    module.head = nn.Sequential(module.head, last()).eval()
    ex = vit_demo.explore(PIXELS, module)
    np.testing.assert_allclose(ex.probabilities, logits_of(module).softmax(0), atol=1e-6)


@pytest.mark.parametrize("scores", SCORES)
def test_methods_and_tests_measure_these_scores(scores):
    module = own()
    ex, turn = vit_demo.explore(PIXELS, module, scores=scores, labels=NAMES), SCORES[scores]
    target, everything = ex.target("dog"), list(range(16))
    assert target == 3

    def log(p):
        return p if scores == "none" else p.log()

    whole = log(turn(logits_of(module, kept=everything)))
    lost = [whole - log(turn(logits_of(module, kept=[i for i in everything if i != left]))) for left in everything]
    np.testing.assert_allclose(ex.heatmap("occlusion", "dog").ravel(), [one[3] for one in lost], atol=1e-5)
    against = ex.heatmap("occlusion", "dog", against="eel").ravel()
    np.testing.assert_allclose(against, [one[3] - one[4] for one in lost], atol=1e-5)
    curves = ex.faithfulness("relevance", steps=4, label="dog", seeds=1)
    np.testing.assert_allclose(curves.deletion[0], turn(logits_of(module))[3], atol=1e-6)
    np.testing.assert_allclose(curves.deletion[-1], turn(logits_of(module, torch.zeros(3, 32, 32)))[3], atol=1e-6)
    logit = vit_demo.explore(PIXELS, module, labels=NAMES)
    for method in (
        "relevance",
        "libra_fullgrad",
        "attnlrp",
        "integrated_gradients",
    ):  # of the logit, whatever the scores
        np.testing.assert_array_equal(ex.heatmap(method, "dog"), logit.heatmap(method, "dog"))
    assert np.isfinite(ex.heatmap("local_surrogate", "dog", budget=12)).all()
    rows = [dict(row) for row in ex.logit_lens()]
    np.testing.assert_allclose([rows[-1][name] for name in NAMES], turn(logits_of(module)), atol=1e-5)
    patch = ex.logit_lens(patches=True)[-1][1][2]
    with torch.no_grad():
        token = adapt(module, 32).final_norm(torch.tensor(ex.tokens()[6]))
        np.testing.assert_allclose(sorted(p for _, p in patch), turn(module.head(token)).sort().values, atol=1e-5)
    assert len(ex.randomization("occlusion", "dog")) == 5
    assert ex.drop_patches([(0, 0)]).preset.scores == scores


def test_smallest_sets_keep_a_probability_of_its_own():
    module, half = Own(), 16
    module.stem, module.place = nn.Conv2d(3, 24, half, half), nn.Parameter(torch.randn(1, 4, 24))
    module.head = nn.Linear(24, 1)
    module.head.weight.data *= 10
    for seed in range(6):
        pixels = torch.randn(3, 32, 32, generator=torch.Generator().manual_seed(seed))
        ex = vit_demo.explore(pixels, module.eval(), labels=["tumour"])
        p = ex.probabilities[0]
        assert p == pytest.approx(float(torch.sigmoid(logits_of(module, pixels))), abs=1e-6)
        if p < 0.5:
            with pytest.raises(InputError, match="not the predicted class"):
                ex.needed()
        else:
            found, left = ex.enough(share=None), ex.needed()
            assert found.probability >= 0.5 and found.is_minimal and ex.enough(share=0.9).probability >= 0.9 * p - 1e-6
            assert left is None or left.probability < 0.5
        share = ex.needed(share=0.5)
        assert share is None or share.probability < p / 2
    raw = vit_demo.explore(pixels, module, scores="none")
    assert raw.logits[0] == raw.probabilities[0] == raw.top(1)[0][1] and not raw.is_confident
    if raw.logits[0] <= 0:
        with pytest.raises(InputError, match="not above 0"):
            raw.enough()


def test_a_network_is_shared_by_results_of_other_scores():
    module = own()
    first, second = (vit_demo.explore(PIXELS, module, scores=scores, labels=NAMES) for scores in ("sigmoid", "softmax"))
    before = first.heatmap("occlusion", 1)
    second.heatmap("occlusion", 1)
    np.testing.assert_array_equal(before, first.heatmap("occlusion", 1))
    assert not np.allclose(before, second.heatmap("occlusion", 1))


@pytest.mark.parametrize(
    ("options", "scores"),
    [
        ({"problem_type": "multi_label_classification"}, "sigmoid"),
        ({"labels": 1}, "sigmoid"),
        ({"labels": 1, "problem_type": "regression"}, "none"),
        ({}, "softmax"),
    ],
)
def test_folders_say_it_too(tmp_path, options, scores):
    module = transformers_vit(**options)
    module.save_pretrained(tmp_path)
    ex = vit_demo.explore("vit_demo/web/examples/cat.jpg", str(tmp_path))
    logits = logits_of(module, ex.pixels[0])
    np.testing.assert_allclose(ex.probabilities, SCORES[scores](logits), atol=1e-5)
    curve = ex.faithfulness("rollout", steps=2, seeds=0).deletion
    best = int(logits.argmax())
    np.testing.assert_allclose(curve[0], SCORES[scores](logits)[best], atol=1e-5)
    chosen = vit_demo.explore("vit_demo/web/examples/cat.jpg", str(tmp_path), scores="none")
    np.testing.assert_allclose(chosen.faithfulness("rollout", steps=2, seeds=0).deletion[0], logits[best], atol=1e-4)
    with pytest.raises(InputError, match="choose one of auto, softmax"):
        vit_demo.explore("vit_demo/web/examples/cat.jpg", str(tmp_path), scores="percent")


@pytest.mark.parametrize("scores", SCORES)
def test_what_the_page_gets(scores):
    ex = vit_demo.explore(PIXELS, own(), scores=scores, labels=NAMES)
    found = payload(ex)
    assert found["predictions"]["scores"] == scores
    assert ("no probabilities" in found["note"]) == (scores == "none")
    assert "<iframe" in to_html(ex)


def test_labels_by_number():
    module = own()
    numbered = vit_demo.explore(PIXELS, module, labels={4 - i: name for i, name in enumerate(NAMES)})
    assert numbered.labels == tuple(reversed(NAMES))
    assert vit_demo.explore(PIXELS, module, labels=json.loads(json.dumps(dict(enumerate(NAMES))))).labels == tuple(
        NAMES
    )
    for wrong in ({0: "a"}, {i + 1: name for i, name in enumerate(NAMES)}, {}):
        with pytest.raises(LabelError, match="name each of them, numbered from 0"):
            vit_demo.explore(PIXELS, module, labels=wrong)
    named = transformers_vit(id2label={0: "a", 1: "b", 2: "c"})
    assert vit_demo.explore(PIXELS, nn.DataParallel(named)).labels == ("a", "b", "c")


def test_logits_in_a_dictionary_are_classes():
    class InDict(Own):
        def forward(self, images):
            return {"logits": super().forward(images), "loss": None}

    torch.manual_seed(0)
    module = InDict().eval()
    ex = vit_demo.explore(PIXELS, module, labels=NAMES)
    np.testing.assert_allclose(ex.logits, logits_of(module), atol=1e-6)
    assert ex.relevance("bee").shape == (4, 4)


@pytest.mark.parametrize(
    "labels",
    [3, [0, 1, 2], [["a"], ["b"], ["c"]], {0: 1, 1: 2, 2: 3}, {"a", "b", "c"}],
    ids=["number", "numbers", "lists", "dict", "set"],
)
def test_labels_of_a_wrong_type_get_a_sentence(labels) -> None:
    with pytest.raises(vit_demo.LabelError, match="each a string"):
        vit_demo.explore(PIXELS, transformers_vit(), labels=labels)
