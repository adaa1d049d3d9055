"""The written-out attention of CPU training is the fused kernel's, in value and in gradient."""

import torch
import torch.nn.functional as F

from vit_demo.training.attention import WrittenOutAttention


def is_fused(out: torch.Tensor) -> bool:
    return "ScaledDotProduct" in type(out.grad_fn).__name__


def test_values_and_gradients_are_those_of_the_fused_kernel():
    torch.manual_seed(0)
    q, k, v, weights = (torch.randn(2, 3, 17, 8) for _ in range(4))
    found = []
    for written_out in (True, False):
        leaves = [x.clone().requires_grad_() for x in (q, k, v)]
        if written_out:
            with WrittenOutAttention():
                out = F.scaled_dot_product_attention(*leaves)
        else:
            out = F.scaled_dot_product_attention(*leaves)
        assert is_fused(out) != written_out
        (out * weights).sum().backward()
        found.append([out, *(leaf.grad for leaf in leaves)])
    for ours, fused in zip(*found, strict=True):
        torch.testing.assert_close(ours, fused, atol=1e-5, rtol=1e-5)


def test_calls_with_a_mask_or_scale_or_without_a_gradient_are_left_to_the_kernel():
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 2, 5, 4) for _ in range(3))
    fused = F.scaled_dot_product_attention(q, k, v)
    with WrittenOutAttention():
        assert torch.equal(F.scaled_dot_product_attention(q, k, v), fused)
    q.requires_grad_()
    for options in ({"attn_mask": torch.ones(5, 5, dtype=torch.bool).tril()}, {"scale": 0.3}, {"is_causal": True}):
        expected = F.scaled_dot_product_attention(q, k, v, **options)
        with WrittenOutAttention():
            found = F.scaled_dot_product_attention(q, k, v, **options)
        torch.testing.assert_close(found, expected)
        assert is_fused(found) == is_fused(expected)
