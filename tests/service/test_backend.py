"""An engine whose networks run elsewhere: here in the same process, but through the serialization of another one."""

import pickle

import numpy as np
import pytest
import torch

from vit_demo.errors import LabelError
from vit_demo.inference import patch_features
from vit_demo.inference.cache import ByteCache
from vit_demo.inference.forward import forward_batch, forward_with_trace
from vit_demo.service.backend import decode, encode
from vit_demo.service.engine import Engine
from vit_demo.service.job_limits import POOLS
from vit_demo.trace import Trace
from vit_demo.training import small
from vit_demo.web.catalog.example_digits import example_picture
from vit_demo.weights import kept_networks


class Elsewhere:
    """A backend with an engine of its own; counts what crosses."""

    pools = POOLS
    device = "elsewhere"

    def __init__(self):
        self.engine, self.sent, self.received = Engine("cpu"), [], []

    def execute(self, call):
        self.sent.append(encode(call))
        preset, patch_size, function, arguments, options, _ = decode(self.sent[-1])
        found = self.engine.run_on_model(preset, patch_size, function, *arguments, **options)
        self.received.append(encode(found))
        return decode(self.received[-1])


@pytest.fixture
def elsewhere():
    return Elsewhere()


def test_every_kind_of_work_has_the_same_result_elsewhere(elsewhere, monkeypatch):
    # The process' own cache of tokens may hold those of this picture from another test.
    monkeypatch.setattr(patch_features, "_cache", ByteCache(1, lambda tokens: tokens.num_bytes))
    three = example_picture(3)
    there = Engine("cpu", elsewhere).explore(three, "digits-tiny", 7)
    here = Engine("cpu").explore(three, "digits-tiny", 7)
    np.testing.assert_array_equal(there.logits, here.logits)
    assert there.device == "elsewhere"
    for compute in (
        lambda ex: ex.attention_maps(),
        lambda ex: ex.relevance("5"),
        lambda ex: ex.heatmap("occlusion", progress=lambda *_: None),
        lambda ex: ex.drop_patches([(0, 0)]).rollout(),
        lambda ex: ex.faithfulness("rollout", steps=3, seeds=1).deletion,
        lambda ex: ex.similarity((1, 2)),
    ):
        np.testing.assert_array_equal(compute(there), compute(here))
    assert len(elsewhere.sent) > 5
    assert max(map(len, elsewhere.sent)) < 30_000, "calls are small"


def test_a_network_that_a_visitor_trained_runs_where_it_is(elsewhere):
    name = kept_networks.keep(small.random_network(small.DEFAULT_CONFIG, 3).eval(), 0.1)
    there = Engine("cpu", elsewhere).explore(example_picture(3), name, 7)
    here = Engine("cpu").explore(example_picture(3), name, 7)
    np.testing.assert_array_equal(there.relevance("5"), here.relevance("5"))
    assert not elsewhere.sent and there.device == here.device != elsewhere.device


def test_errors_of_the_input_come_back_as_themselves(elsewhere):
    result = Engine("cpu", elsewhere).explore(example_picture(3), "digits-tiny", 7)
    with pytest.raises(LabelError, match="no class 'ten'"):
        result.relevance("ten")


def test_a_trace_crosses_once_and_not_as_the_storage_of_its_views(elsewhere):
    Engine("cpu", elsewhere).explore(example_picture(3), "digits-small", 4)
    (sent,) = elsewhere.received
    _, trace, _ = decode(sent)
    content = sum(t.nbytes for kept in (trace.q, trace.k, trace.v) for t in kept)
    assert content <= len(sent) < 1.02 * content


def test_every_dtype_survives():
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.bool):
        given = torch.arange(6).reshape(2, 3).to(dtype)[:, 1:]
        found = decode(encode({"x": [given]}))["x"][0]
        assert torch.equal(found, given) and found.dtype == dtype


def test_a_function_that_another_process_could_not_import_is_a_bug_here_already():
    with pytest.raises((pickle.PicklingError, AttributeError)):
        encode(lambda: None)


@pytest.mark.parametrize("class_token", [True, False])
def test_a_batch_is_the_single_passes(network, class_token):
    model = network(class_token=class_token, pool="cls" if class_token else "mean")
    pixels = torch.randn(3, 3, 16, 16)
    for one, (logits, trace, _) in zip(pixels, forward_batch(model, pixels, patch_size=4), strict=True):
        expected_logits, expected, _ = forward_with_trace(model, one[None], patch_size=4)
        torch.testing.assert_close(logits, expected_logits)
        assert isinstance(trace, Trace) and trace.grid == expected.grid
        assert trace.num_prefix_tokens == expected.num_prefix_tokens
        torch.testing.assert_close(trace.early, expected.early)
        torch.testing.assert_close(trace.early[0, -1], expected_logits)
        for name in ("q", "k", "v"):
            torch.testing.assert_close(getattr(trace, name), getattr(expected, name))
