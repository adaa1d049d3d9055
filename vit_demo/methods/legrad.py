"""LeGrad (Bousselham et al., 2024, https://arxiv.org/abs/2404.03214): the gradient of attention, one block at a time.

Each block gives the class a score of its own: its tokens go through the head as if they were the network's last ones.
The gradient of that score at the block's own attention says where more attention would raise it. Unlike in relevance,
it is not multiplied by the attention, and no gradient passes from one block to the next.
"""

from typing import Unpack

import torch
import torch.nn.functional as F
from torch import Tensor

from vit_demo.methods.attention_rows import queries_per_chunk
from vit_demo.methods.registry import register
from vit_demo.methods.targets import Target, class_scores, forward_with_grad
from vit_demo.model.resample import without_autocast
from vit_demo.trace import PassOptions, TracedViT
from vit_demo.trace.trace import to_grid


@register(
    "legrad",
    title="LeGrad",
    use="Where more attention, in any block, would raise the score of a class.",
    class_specific=True,
    cost="backward",
    unit="logit",
)
def legrad(
    model: TracedViT, images: Tensor, target: Target = None, *, against: Target = None, **options: Unpack[PassOptions]
) -> Tensor:
    """The positive gradient of each block's own score for a class at its attention, summed over the queries.

    It is the mean over heads and blocks, at least 0; the published map is the same, scaled from 0 to 1. Parameters as
    in ``vit_demo.methods``. ``InputError`` if the tokens between the network's blocks cannot be seen.
    """
    outputs = list[Tensor]()

    def attention_fn(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        outputs.append(F.scaled_dot_product_attention(q, k, v))
        return outputs[-1]

    with torch.inference_mode(False), torch.enable_grad(), without_autocast(images.device):
        logits, trace = forward_with_grad(model, images, attention_fn, **options)
        trace.check_tokens()
        chosen = logits.argmax(1) if target is None else target
        shares = torch.zeros(len(images), trace.num_tokens, dtype=torch.float32, device=logits.device)
        together = model.calls_per_block  # of attention; more than one in parallel branches
        for i, tokens in enumerate(trace.tokens[1:]):
            block = slice(i * together, (i + 1) * together)
            score = class_scores(model.forward_head(tokens).float(), chosen, against).sum()
            gradients = torch.autograd.grad(score, outputs[block], retain_graph=True)
            for gradient, values in zip(gradients, trace.v[block], strict=True):
                shares += _positive_gradient(gradient, values.detach())
    return to_grid(shares / len(outputs), trace)


def _positive_gradient(d_o: Tensor, v: Tensor) -> Tensor:
    """The positive gradient at attention, summed over queries, the mean over heads: ``[B, N]``, a few rows at a time.

    ``d_o`` is the gradient at what the attention gives of the values ``v``, ``[B, H, N, e]`` both.
    """
    total = torch.zeros(v.shape[0], v.shape[2], dtype=torch.float32, device=v.device)
    for rows in d_o.split(queries_per_chunk(v), 2):
        total += (rows.float() @ v.float().mT).relu_().mean(1).sum(1)  # [B, H, c, N] -> [B, N]
    return total
