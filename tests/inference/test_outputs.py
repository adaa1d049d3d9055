"""What comes out of a network, and which of that are the logits, as the caller has it."""

from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import vit_demo
from vit_demo.errors import InputError, PresetError

from ..trace.networks import timm_network
from .test_wrappers import CAT, NAMES, NOISE

pytestmark = pytest.mark.filterwarnings("ignore")


class After(nn.Module):
    """A network that returns something made of its tokens ``[B, N, D]``, its pooled vector, and its logits."""

    def __init__(self, put: Callable[..., Any]) -> None:
        super().__init__()
        self.inner, self.put = timm_network("vision_transformer.VisionTransformer"), put
        self.other, self.project = nn.Linear(24, 7), nn.Linear(24, 16)

    def forward(self, images: Tensor) -> Any:
        x = self.inner.forward_features(images)
        pooled = self.inner.forward_head(x, pre_logits=True)
        return self.put(self, x, pooled, self.inner.head(pooled))


Both = namedtuple("Both", "features scores")


@dataclass
class Result:
    tokens: Tensor
    answer: Tensor


FOUND: dict[str, Callable[..., Any]] = {
    "features first": lambda net, x, pooled, logits: (pooled, logits),
    "logits first": lambda net, x, pooled, logits: (logits, pooled),
    "a list": lambda net, x, pooled, logits: [pooled, x, logits],
    "a named tuple": lambda net, x, pooled, logits: Both(pooled, logits),
    "nested": lambda net, x, pooled, logits: (x, [pooled, (logits,)]),
    "a dictionary of other names": lambda net, x, pooled, logits: {"embedding": pooled, "out": logits},
    "a field logits": lambda net, x, pooled, logits: {"z": net.project(pooled), "logits": logits},
    "a nested field logits": lambda net, x, pooled, logits: (net.project(pooled), {"logits": logits, "loss": None}),
    "a dataclass": lambda net, x, pooled, logits: Result(x, logits),
    "a namespace": lambda net, x, pooled, logits: SimpleNamespace(features=pooled, prediction=logits),
    "normalised features": lambda net, x, pooled, logits: (F.normalize(pooled, dim=1), logits),
    "with its probabilities": lambda net, x, pooled, logits: (logits.softmax(1), logits),
    "with its logarithms": lambda net, x, pooled, logits: (logits, logits.log_softmax(1)),
    "with its class": lambda net, x, pooled, logits: (logits.argmax(1), logits),
    "with a loss": lambda net, x, pooled, logits: (logits.sum(), logits),
    "the same twice": lambda net, x, pooled, logits: (logits, logits),
    "softmax": lambda net, x, pooled, logits: logits.softmax(1),
    "softmax after a temperature": lambda net, x, pooled, logits: F.softmax(logits / 0.5, dim=-1),
    "softmax by hand": lambda net, x, pooled, logits: logits.exp() / logits.exp().sum(1, keepdim=True),
    "softmax, copied": lambda net, x, pooled, logits: logits.softmax(1).clone(),
    "per cent": lambda net, x, pooled, logits: 100 * logits.softmax(1),
    "exp of log softmax": lambda net, x, pooled, logits: logits.log_softmax(1).exp(),
    "log softmax": lambda net, x, pooled, logits: F.log_softmax(logits, dim=1),
    "softmax in a tuple": lambda net, x, pooled, logits: (pooled, logits.softmax(1)),
    "a mean of two softmaxes": lambda net, x, pooled, logits: (logits.softmax(1) + (2 * logits).softmax(1)) / 2,
    "sigmoid": lambda net, x, pooled, logits: logits.sigmoid(),
    "F.sigmoid in a dictionary": lambda net, x, pooled, logits: {"f": pooled, "p": F.sigmoid(logits)},
    "sigmoid by hand": lambda net, x, pooled, logits: 1 / (1 + (-logits).exp()),
    "tanh from 0 to 1": lambda net, x, pooled, logits: (torch.tanh(logits / 2) + 1) / 2,
}
ANSWERS = {
    "softmax after a temperature": lambda z: (2 * z).softmax(1), "sigmoid": torch.sigmoid,
    "a mean of two softmaxes": lambda z: (z.softmax(1) + (2 * z).softmax(1)) / 2,
    **dict.fromkeys(("F.sigmoid in a dictionary", "sigmoid by hand", "tanh from 0 to 1"), torch.sigmoid),
}  # fmt: skip


@pytest.mark.parametrize("name", FOUND)
def test_the_answer_is_what_the_caller_reads(name):
    module = After(FOUND[name]).eval()
    with torch.no_grad():
        logits = module.inner(NOISE[None])
    expected = ANSWERS.get(name, lambda z: z.softmax(1))(logits)[0]
    ex = vit_demo.explore(NOISE, module, labels=NAMES)
    assert len(vit_demo.explore(NOISE, module).labels) == 5
    np.testing.assert_allclose(ex.probabilities, expected, atol=1e-6)
    curve = ex.faithfulness("rollout", steps=2, seeds=0).deletion
    np.testing.assert_allclose(curve[0], expected.max(), atol=1e-5)
    np.testing.assert_allclose(dict(ex.logit_lens()[-1])[ex.top(1)[0][0]], expected.max(), atol=1e-5)
    if name in ("features first", "nested", "softmax", "softmax in a tuple", "sigmoid", "F.sigmoid in a dictionary"):
        inner = vit_demo.explore(NOISE, module.inner, labels=NAMES)
        for method in ("relevance", "attnlrp", "libra_fullgrad"):  # of the logits, whatever follows these
            np.testing.assert_allclose(ex.heatmap(method, "dog"), inner.heatmap(method, "dog"), atol=1e-6)


@pytest.mark.parametrize(
    ("put", "answer"),
    [
        (lambda net, x, pooled, logits: logits[:, :1], torch.sigmoid),
        (lambda net, x, pooled, logits: logits[:, :1].sigmoid(), Tensor.clone),
        (lambda net, x, pooled, logits: logits.softmax(1)[:, 1:], Tensor.clone),
        (
            lambda net, x, pooled, logits: torch.cat([1 - logits[:, :1].sigmoid(), logits[:, :1].sigmoid()], 1),
            Tensor.clone,
        ),
    ],
)
def test_a_part_of_what_a_head_gives_is_no_embedding(put, answer):
    module = After(put).eval()
    with torch.no_grad():
        expected = answer(module(NOISE[None])[0])
    ex = vit_demo.explore(NOISE, module)
    np.testing.assert_allclose(ex.probabilities, expected, atol=1e-6)
    assert len(ex.labels) == len(expected)


@pytest.mark.parametrize(
    ("put", "words"),
    [
        (lambda net, x, pooled, logits: 100 * logits.sigmoid(), "a function of sigmoids"),
        (lambda net, x, pooled, logits: F.logsigmoid(logits), "a function of sigmoids"),
        (lambda net, x, pooled, logits: logits.sigmoid().log(), "a function of sigmoids"),
        (lambda net, x, pooled, logits: logits.sort(1).values, "sorted by their size"),
        (lambda net, x, pooled, logits: torch.topk(logits.softmax(1), 5), "sorted by their size"),
        (lambda net, x, pooled, logits: logits.T, r"\[5, 1\] for one picture"),
        (lambda net, x, pooled, logits: torch.tensor(logits.tolist()), "not detached"),
    ],
)
def test_what_is_neither_logits_nor_probabilities_is_refused(put, words):
    with pytest.raises(PresetError, match=words):
        vit_demo.explore(NOISE, After(put).eval())


def test_scores_that_are_given_win():
    module = After(FOUND["softmax"]).eval()
    with torch.no_grad():
        probabilities = module(NOISE[None])[0]
    for scores, expected in (
        ("softmax", probabilities), ("none", probabilities), ("sigmoid", probabilities.sigmoid()),
    ):  # fmt: skip
        ex = vit_demo.explore(NOISE, module, scores=scores)
        np.testing.assert_allclose(ex.probabilities, expected, atol=1e-6)


def test_numbers_from_0_to_1_of_another_origin_are_named():
    module = After(lambda net, x, pooled, logits: logits.clamp(0, 1)).eval()
    with pytest.warns(UserWarning, match="from 0 to 1"):
        ex = vit_demo.explore(NOISE, module)
    assert 'scores="none"' in ex.preprocessing.note


def test_a_network_whose_outputs_are_several_names_output():
    module = After(lambda net, x, pooled, logits: {"kind": net.other(pooled), "animal": logits, "tokens": x}).eval()
    with pytest.raises(PresetError, match=r"kind: \[1, 7\], animal: \[1, 5\].*output="):
        vit_demo.explore(NOISE, module)
    with torch.no_grad():
        other, logits, _ = module(NOISE[None]).values()
    for output, expected in (
        ("kind", other),
        (0, other),
        (-2, logits),
        (lambda found: found["animal"] / 2, logits / 2),
    ):
        ex = vit_demo.explore(NOISE, module, output=output)
        np.testing.assert_allclose(ex.logits, expected[0], atol=1e-6)
        assert ex.relevance(1).shape == (4, 4) and len(ex.labels) == expected.shape[1]
    with pytest.raises(InputError, match="no output 'colour': choose one of"):
        vit_demo.explore(NOISE, module, output="colour")
    with pytest.raises(InputError, match="output= is for networks in memory"):
        vit_demo.explore(CAT, "photos-tiny", output=0)


def test_a_projection_beside_the_logits_is_not_taken_for_them():
    module = After(lambda net, x, pooled, logits: (logits, net.project(pooled))).eval()
    with pytest.raises(PresetError, match="output="):
        vit_demo.explore(NOISE, module)


@pytest.mark.parametrize(
    "put", [lambda n, x, p, z: (p, x), lambda n, x, p, z: (F.normalize(p @ n.project.weight.T), None, p.sum())]
)
def test_an_embedding_in_a_tuple_has_no_classes(put):
    assert vit_demo.explore(NOISE, After(put).eval()).labels == ()


@pytest.mark.parametrize(
    "put", [lambda n, x, p, z: n.inner.head(x), lambda n, x, p, z: {"logits": n.inner.head(x)}, lambda n, x, p, z: None]
)
def test_an_answer_for_each_token_is_none_for_the_picture(put):
    with pytest.raises(PresetError, match="output="):
        vit_demo.explore(NOISE, After(put).eval())


def test_what_transformers_returns_for_other_tasks_is_refused():
    transformers = pytest.importorskip("transformers")
    config = transformers.BeitConfig(
        image_size=32, patch_size=8, hidden_size=24, num_hidden_layers=3, num_attention_heads=3, intermediate_size=48,
        vocab_size=50,
    )  # fmt: skip
    with pytest.raises(PresetError, match=r"logits \[B, K\].*output="):
        vit_demo.explore(NOISE, transformers.BeitForMaskedImageModeling(config).eval())
