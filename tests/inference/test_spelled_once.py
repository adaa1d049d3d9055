"""One spelling of each argument; maps and curves that know what they are; results that keep nothing of others."""

import inspect
import pickle

import numpy as np
import pytest
import torch
from torch import Tensor

import vit_demo
from tests.trace.networks import timm_vit
from vit_demo import render
from vit_demo.errors import InputError
from vit_demo.methods import find_method
from vit_demo.metrics import Faithfulness
from vit_demo.web.catalog.example_digits import example_picture

SEVEN = example_picture(7)


@pytest.fixture(scope="module")
def ex() -> vit_demo.Exploration:
    return vit_demo.explore(SEVEN, "digits-tiny", patch_size=7)


def test_another_spelling_is_an_error() -> None:
    for wrong in (
        lambda: vit_demo.explore(SEVEN, "digits-tiny", 7),
        lambda: vit_demo.explore(SEVEN, preset="digits-tiny"),
        lambda: vit_demo.load("digits-tiny", 7),
        lambda: vit_demo.explore(SEVEN, "digits-tiny", patches=7),
    ):
        with pytest.raises(TypeError):
            wrong()


def test_signatures_say_what_can_be_passed() -> None:
    explore, batch = (inspect.signature(one).parameters for one in (vit_demo.explore, vit_demo.explore_batch))
    assert list(batch)[1:-2] == list(explore)[1:] and list(batch)[-2:] == ["batch_size", "on_error"]
    own = inspect.signature(vit_demo.Explainer).parameters
    assert set(own) == set(explore) - {"image"}
    for one in (explore, batch, own):
        assert all(one[name].kind is inspect.Parameter.KEYWORD_ONLY for name in ("patch_size", "device", "fit"))


def difference(logits: Tensor) -> Tensor:
    return logits[:, 7] - logits[:, 1]


@pytest.mark.parametrize("method", ["libra_fullgrad", "relevance", "occlusion"])
def test_a_function_of_the_logits_is_explained_as_by_maps(ex, method: str) -> None:
    explainer = vit_demo.Explainer("digits-tiny", patch_size=7)
    expected = explainer.maps(ex.pixels, method, label=difference)[0].numpy()
    found = ex.heatmap(method, difference)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    if method == "libra_fullgrad":
        np.testing.assert_allclose(found, ex.heatmap(method, "7", against="1"), atol=1e-5)
        np.testing.assert_allclose(ex.gradient(difference), ex.gradient("7", against="1"), atol=1e-5)
    with pytest.raises(InputError, match="compared with nothing"):
        ex.heatmap(method, difference, against="1")


def test_faithfulness_says_what_it_measured(ex) -> None:
    by_function = ex.faithfulness("relevance", label=difference, steps=4)
    by_difference = ex.faithfulness(ex.relevance(difference), label="7", against="1", steps=4)
    np.testing.assert_allclose(by_function.deletion, by_difference.deletion, atol=1e-5)
    np.testing.assert_allclose(by_function.deletion[0], ex.logits[7] - ex.logits[1], atol=1e-4)
    improbable = int(ex.probabilities.argmin())
    curves = [ex.faithfulness(label=label, steps=4) for label in (7, 7, improbable)]
    curves += [ex.faithfulness("attention", label=7, steps=4), by_function, by_difference]
    measured = ["probability", "probability", "logit", "probability", "function", "difference"]
    assert [one.measured for one in curves] == measured
    mean = Faithfulness.mean([curves[0], curves[3]])
    assert mean.measured == "probability"
    np.testing.assert_allclose(mean.deletion_area, (curves[0].deletion_area + curves[3].deletion_area) / 2, rtol=1e-5)
    np.testing.assert_allclose(mean.random_deletion, curves[0].random_deletion, rtol=1e-5)
    for mixed in (curves[:3], curves[3:], [], [curves[0], ex.faithfulness(label=7, steps=3)]):
        with pytest.raises(InputError, match="have a mean"):
            Faithfulness.mean(mixed)
    regression = vit_demo.explore(SEVEN, "digits-tiny", patch_size=7, scores="none")
    assert regression.faithfulness("attention", steps=2).measured == "logit"


def test_a_map_is_drawn_as_its_method_s(ex) -> None:
    found = ex.heatmap("libra_fullgrad")
    raised = found + abs(found.min())  # signed by method, with no value below 0
    named = ex.overlay(np.array(found), method="libra_fullgrad")
    assert found.method == "libra_fullgrad" and ex.overlay(found).tobytes() == named.tobytes()
    assert getattr(raised, "method", None) is None and getattr(found[:1], "method", None) is None
    positive = pickle.loads(pickle.dumps(found))
    positive[:] = np.abs(found)
    style = find_method("libra_fullgrad").style(ex.trace.num_tokens)
    expected = render.overlay(ex.image, np.array(positive), **style)
    assert ex.overlay(positive, method="libra_fullgrad").tobytes() == expected.tobytes()
    found[:] = np.abs(found)
    assert ex.overlay(found).tobytes() == expected.tobytes() != ex.overlay(np.array(found)).tobytes()
    assert ex.attention().method == "attention" and type(found.sum()) is np.float32


@pytest.mark.parametrize("fused", [True, False])
def test_a_result_of_a_batch_keeps_its_own_part_of_memory(fused: bool) -> None:
    module = timm_vit()()
    for one in module.modules():
        one.fused_attn = fused
    images = [torch.randn(3, 32, 32) for _ in range(8)]
    explainer = vit_demo.Explainer(module)
    alone, [*many] = explainer(images[3]), explainer.batch(images)
    assert many[3].num_bytes <= 1.1 * alone.num_bytes
    for found, expected in zip(many[3].trace.q, alone.trace.q, strict=True):
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)


def test_a_transform_is_named_as_what_prepared_the_photo() -> None:
    module, x = timm_vit()(), torch.randn(3, 32, 32)
    assert "prepared nothing" in vit_demo.explore(x, module).preprocessing.note
    note = vit_demo.explore(SEVEN, module, transform=lambda _: x).preprocessing.note
    assert "transform" in note and "prepared nothing" not in note


def test_a_result_is_loaded_with_the_network_that_made_it_alone(tmp_path) -> None:
    for shape in ({}, {"num_classes": 0}):
        module, other, x = timm_vit(**shape)(), timm_vit(**shape)(), torch.randn(3, 32, 32)
        with torch.no_grad():
            for parameter in other.parameters():
                parameter.add_(torch.randn_like(parameter), alpha=0.3)
        path = tmp_path / "result.safetensors"
        ex = vit_demo.explore(x, module)
        ex.save(path)
        again = vit_demo.load_result(path, module)
        np.testing.assert_allclose(again.heatmap("norm_attention"), ex.heatmap("norm_attention"), atol=1e-6)
        vit_demo.load_result(path, module.bfloat16())
        with pytest.raises(InputError, match="pass the one that made it"):
            vit_demo.load_result(path, other)


class TwoHeads(torch.nn.Module):
    """Two outputs [B, K], so that nothing says which the logits are; the second are probabilities."""

    def __init__(self) -> None:
        super().__init__()
        self.vit, self.image_size = timm_vit(num_classes=5)(), 32
        self.other = torch.nn.Linear(self.vit.embed_dim, 7)

    def forward(self, images: Tensor) -> dict[str, Tensor]:
        x = self.vit.forward_features(images)
        return {"first": self.other(x[:, 0]), "second": self.vit.forward_head(x).softmax(1)}


@pytest.mark.parametrize("scores", ["auto", "none"])
@pytest.mark.parametrize("output", ["first", "second", lambda found: found["second"]])
def test_a_result_is_loaded_with_the_output_and_scores_that_it_was_made_with(tmp_path, output, scores) -> None:
    module, x, path = TwoHeads().eval(), torch.randn(3, 32, 32), tmp_path / "result.safetensors"
    ex = next(vit_demo.explore_batch([x], module, output=output, scores=scores))
    ex.save(path)
    again = vit_demo.load_result(path, module, output=output)
    np.testing.assert_array_equal(again.logits, ex.logits)
    np.testing.assert_allclose(again.relevance(), ex.relevance(), atol=1e-6)
