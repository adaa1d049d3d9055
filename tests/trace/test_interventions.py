"""Silent heads and blocks of every network, against one whose attention or block is replaced from outside."""

from dataclasses import replace

import pytest
import torch

from vit_demo.errors import InputError
from vit_demo.inference.forward import run_changed
from vit_demo.trace import Graft, Intervention, Trace
from vit_demo.trace.attention_mode import AttentionMode


class Changed(AttentionMode):
    """Replaces what one head of one attention gives."""

    def __init__(self, block, head, mean):
        super().__init__(batch=2)
        self.block, self.head, self.mean, self.count = block, head, mean, -1

    def attend(self, q, k, v, compute):
        out = compute(None)
        self.count += q.shape[2] == k.shape[2]
        if self.count == self.block and q.shape[2] == k.shape[2]:
            out = out.clone()
            out[:, self.head] = out[:, self.head].mean(1, keepdim=True) if self.mean else 0
        return out


def changed(network, images, intervention, **options):
    with torch.no_grad():
        return run_changed(network, images, intervention, lambda model, x: model(x, **options))


@pytest.mark.parametrize("kind", ["zero", "mean"])
def test_a_silent_head_is_one_whose_output_was_replaced(network, images, kind):
    with torch.no_grad():
        plain = network(images)
        with Changed(1, 2, kind == "mean"):
            expected = network(images)
    found = changed(network, images, Intervention(heads=((1, 2),), replace=kind))
    torch.testing.assert_close(found, expected)
    assert not torch.equal(found, plain)
    silent = torch.zeros(2, network.config.depth, network.config.num_heads, dtype=torch.bool)
    silent[1, 1, 2] = True  # in the second picture alone
    each = changed(network, images, Intervention(replace=kind), silent=silent)
    torch.testing.assert_close(each, torch.stack([plain[0], expected[1]]))
    torch.testing.assert_close(network(images), plain)  # nothing stays


def test_the_trace_of_a_silent_head_gives_what_it_gives(network, images):
    for kind in ("zero", "mean"):
        trace = Trace()
        changed(network, images, Intervention(heads=((0, 1),), replace=kind), trace=trace)
        out = (trace.attention(0) @ trace.v[0].float())[:, 1]
        assert not out.any() if kind == "zero" else torch.allclose(out, out[:, :1].expand_as(out), atol=1e-5)


def test_a_silent_block_and_tokens_of_another_pass(network, images):
    if not network.shows_tokens:
        with pytest.raises(InputError, match="cannot be seen"):
            changed(network, images, Intervention(blocks=(1,)))
        return
    last = len(network.structure.blocks) - 1
    with torch.no_grad():
        network(images, trace := Trace(record_tokens=True))
    head = network.forward_head(trace.tokens[-2])
    torch.testing.assert_close(changed(network, images, Intervention(blocks=(last,))), head, rtol=1e-4, atol=1e-5)
    n = trace.tokens[0].shape[1]
    graft = Graft(last, torch.ones(n, dtype=torch.bool), trace.tokens[last][0])
    found = changed(network, images, Intervention(grafts=(graft,)))
    torch.testing.assert_close(found, network(images)[:1].expand_as(found), rtol=1e-4, atol=1e-5)
    nothing = replace(graft, places=torch.zeros(n, dtype=torch.bool))
    torch.testing.assert_close(changed(network, images, Intervention(grafts=(nothing,))), network(images))


def test_dropped_patches_are_in_no_mean(network, images):
    if not network.structure.drops:
        return
    kept = torch.tensor([[0, 3, 5, 6, 10, 15]]).expand(2, -1)
    silent = Intervention(heads=((0, 0), (1, 2)), blocks=(2,) if network.shows_tokens else (), replace="mean")
    found = []
    for leaves_out in {network.leaves_out, False}:
        before, network.leaves_out = network.leaves_out, leaves_out
        found.append(changed(network, images, silent, kept_patches=kept))
        network.leaves_out = before
    torch.testing.assert_close(found[0], found[-1], rtol=1e-4, atol=1e-5)
