"""What class-specific methods share: the class's score, a pass with gradients, and the tokens that the head reads."""

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any, Unpack

import torch
from torch import Tensor

from vit_demo.errors import InputError, PresetError, warn
from vit_demo.methods.gradient_rules import ModifiedBackward, missing_rule
from vit_demo.model.pooling import pooled_slices
from vit_demo.model.resample import without_autocast
from vit_demo.trace import AttentionFn, PassOptions, Trace, TracedViT
from vit_demo.trace.classifier_head import shares_read

Target = int | Tensor | Callable[[Tensor], Tensor] | None
"""One class for all samples, or int64 ``[B]``, or a function from logits ``[B, K]`` to ``[B]``; None for each sample's
most probable class."""

NO_GRADIENTS = (
    "This network computes attention where torch records no gradients, which this method needs: do without "
    "torch.no_grad and an autograd.Function of your own there."
)


NO_SCORES = "A function of logits [B, K] returns a tensor [B], one number for each image, {0}; this one returned {1}."
NO_RULE = "This method has no rule for the operation {} of this network: there its map follows the plain gradient."


def class_scores(logits: Tensor, target: Target, against: Target = None) -> Tensor:
    """What a map explains: the logit of a class, or by how much it exceeds that of another.

    Args:
        logits: ``[B, K]``.
        target: The class, or a function of the logits; None for each sample's most probable.
        against: The class that it is compared with; None for none.

    Returns:
        ``[B]``.

    Raises:
        InputError: If the function returns anything else, or where a gradient is needed what has none at the logits.
    """
    if callable(target) and not isinstance(target, Tensor):
        return _checked(target(logits), logits)
    if target is None:
        target = logits.argmax(1)
    scores = _logits_of(logits, target)
    return scores if against is None else scores - _logits_of(logits, against)


def _checked(found: Any, logits: Tensor) -> Tensor:
    kind = f"{found.dtype} {list(found.shape)}" if isinstance(found, Tensor) else type(found).__name__
    is_real = isinstance(found, Tensor) and found.dtype != torch.bool and not found.is_complex()
    if not is_real or found.shape != logits.shape[:1]:
        raise InputError(NO_SCORES, "such as logits[:, 3] - logits[:, 5]", kind)
    if not found.isfinite().all():
        raise InputError(NO_SCORES, "all finite", "NaN or infinity")
    if torch.is_grad_enabled() and logits.requires_grad:
        codes = torch.linspace(1, 2, len(found), device=found.device)
        plain, coded = (
            torch.autograd.grad(x.sum(), logits, retain_graph=True, allow_unused=True)[0] if x.requires_grad else None
            for x in (found, found * codes)
        )
        if plain is None or coded is None:
            raise InputError(NO_SCORES, "by what has a gradient", "a constant")
        if ((coded - codes[:, None] * plain).abs() > 1e-3 * plain.abs().max()).any():
            raise InputError(NO_SCORES, "of its own logits", "what mixes several images")
    return found


def _logits_of(logits: Tensor, classes: Any) -> Tensor:
    if not isinstance(classes, Tensor):
        return logits[:, classes]
    # Cloned, because autograd refuses a tensor created in inference mode.
    index = classes.to(logits.device).expand(len(logits)).clone()
    return logits.gather(1, index[:, None])[:, 0]


def input_gradient(
    model: TracedViT, images: Tensor, target: Target = None, against: Target = None, **options: Unpack[PassOptions]
) -> Tensor:
    """The gradient ``[B, C, height, width]`` of a class's logit at the input (Simonyan et al., 2013, arXiv 1312.6034).

    Parameters as in ``vit_demo.methods``.
    """
    with torch.inference_mode(False), torch.enable_grad():
        x = images.detach().clone().requires_grad_()
        score = class_scores(model(x, **options), target, against).sum()
        (gradient,) = torch.autograd.grad(score, x)
    return gradient.float()


def pooling_weights(model: TracedViT, trace: Trace, target: Target, against: Target = None) -> Tensor:
    """The share ``[B, N]`` that each token has in what the head reads for a class; what attention pooling reads apart.

    They sum to 1, or are 0 where the head reads nothing but what attention pooling gives.
    """
    if not model.structure.reads_evenly:
        return shares_read(model, trace.tokens[-1], partial(class_scores, target=target, against=against))
    runs = pooled_slices(model.config.pool, trace.num_prefix_tokens)
    weights = torch.zeros(len(trace.q[0]), trace.num_tokens, dtype=torch.float32, device=trace.q[0].device)
    for tokens in runs:  # vectors that are concatenated for the head count alike
        weights[:, tokens] += 1 / (weights[:, tokens].shape[1] * len(runs))
    return weights


def forward_with_grad(
    model: TracedViT, images: Tensor, attention_fn: AttentionFn | None = None, **options: Unpack[PassOptions]
) -> tuple[Tensor, Trace]:
    """A forward pass whose graph is kept; call it with gradients enabled. Parameters as in ``TracedViT.forward``.

    Returns logits ``[B, K]`` and a trace with tokens, both with their graph; ``PresetError`` if gradients are off where
    the network calls ``attention_fn``.
    """

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        assert attention_fn is not None
        if not torch.is_grad_enabled():
            raise PresetError(NO_GRADIENTS)
        return attention_fn(q, k, v)

    trace = Trace(record_tokens=True)
    images = images.detach().clone().requires_grad_()  # frozen weights start no graph
    return model(images, trace, attention_fn=attention_fn and attend, **options), trace


def token_gradients(
    model: TracedViT,
    images: Tensor,
    target: Target,
    against: Target = None,
    *,
    attention_fn: AttentionFn | None = None,
    rules: ModifiedBackward | None = None,
    blocks: slice = slice(None),
    **options: Unpack[PassOptions],
) -> tuple[list[Tensor], list[Tensor], Trace]:
    """The tokens before each block, and the gradient of a class's score at them.

    ``rules`` are active during the pass, ``blocks`` says which of the blocks are wanted, and ``attention_fn`` is as in
    ``TracedViT.forward``; other parameters as in ``vit_demo.methods``.

    Returns:
        Tokens and gradients, each one ``[B, N, D]`` float32 a block, and the trace. Of a network whose blocks do not
        show their tokens there is only the first.
    """
    with torch.inference_mode(False), torch.enable_grad(), without_autocast(images.device):
        with nullcontext() if rules is None else rules:
            logits, trace = forward_with_grad(model, images, attention_fn, **options)
        tokens = trace.tokens[: max(1, len(trace.tokens) - 1)][blocks]  # without those after the last block
        score = class_scores(logits, target, against).sum()
        if rules is not None and not model.is_own and (missing := missing_rule(logits, tokens, rules.without_rule)):
            warn(NO_RULE.format(missing))
        gradients = torch.autograd.grad(score, tokens)
    return [x.detach().float() for x in tokens], [gradient.float() for gradient in gradients], trace
