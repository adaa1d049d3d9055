"""The tokens of every depth, what the head makes of them (logit lens; nostalgebraist, 2020), and the few longest."""

from typing import NamedTuple, Unpack

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vit_demo.defaults import NUM_CLASSES
from vit_demo.model.resample import num_bytes
from vit_demo.trace import PassOptions, Trace, TracedViT

LEAST_RATIO = 2.0  # an outlier is at least this many times as long as the median token


class PatchTokens(NamedTuple):
    """What one forward pass shows of its patches: before the first block, then after each. N is those in the sequence.

    Attributes:
        tokens: float32 ``[blocks + 1, N, D]``, after the final norm, as the head reads them.
        norms: float32 ``[blocks + 1, N]``: the length of each token before the final norm.
        classes: int64 ``[blocks + 1, N, K]``: indices of the most likely classes, highest first; K = 0 without classes.
        probabilities: float32 ``[blocks + 1, N, K]``: their probabilities, of all classes.
    """

    tokens: Tensor
    norms: Tensor
    classes: Tensor
    probabilities: Tensor

    @property
    def num_bytes(self) -> int:
        """Memory of all fields."""
        return num_bytes(list(self))


@torch.no_grad()
def patch_tokens(
    model: TracedViT, images: Tensor, *, count: int = NUM_CLASSES, **options: Unpack[PassOptions]
) -> PatchTokens:
    """Runs one image and reads every patch at every depth.

    The classes are the logit lens of each patch: its token goes through the final norm and the head as if it were what
    the head pools. A head that reads the class token was trained on that token alone, so for such a model the classes
    of patches are a guess by analogy; a head that reads the mean of the patches was trained on sums of these logits. A
    head that reads two vectors, the class token and another, gets the class token's own for the first.

    At most ``count`` classes are returned for each patch. Other parameters as in ``vit_demo.methods``.
    """
    found = [_read(model, x[0], count) for x in _tokens(model, images, **options)]
    return PatchTokens(*(torch.stack(values) for values in zip(*found, strict=True)))


@torch.no_grad()
def logit_lens(model: TracedViT, images: Tensor, **options: Unpack[PassOptions]) -> Tensor:
    """Logits ``[B, blocks + 1, K]``: final norm, pooling and head on the tokens before the first block and after each.

    Arguments as in ``TracedViT.forward``; the last logits are the model's output.
    """
    return torch.stack([model.forward_head(x) for x in _tokens(model, images, **options)], dim=1).float()


@torch.no_grad()
def block_tokens(
    model: TracedViT, images: Tensor, depth: int, *, norm: bool = True, **options: Unpack[PassOptions]
) -> Tensor:
    """The tokens ``[B, N, D]``, prefix included, after ``depth`` blocks; with ``norm``, as the head reads them.

    Other arguments as in ``TracedViT.forward``.
    """
    tokens = _tokens(model, images, **options)[depth]
    return (model.final_norm(tokens) if norm else tokens).float()


@torch.no_grad()
def strongest_components(
    model: TracedViT, images: Tensor, count: int, **options: Unpack[PassOptions]
) -> tuple[Tensor, Tensor, int, Tensor]:
    """The components of one image's tokens that vary most. Arguments as in ``TracedViT.forward``.

    Returns:
        These components of every depth, not normed, ``[blocks + 1, N, count]``, prefix included; which they are
        ``[count]``, in ascending order; how many a token has; and the logits of every depth ``[blocks + 1, K]``.
    """
    depths = _tokens(model, images, **options)
    tokens = torch.stack([x[0] for x in depths]).float()  # [blocks + 1, N, D]
    chosen = tokens.flatten(0, 1).std(0).topk(min(count, tokens.shape[2])).indices.sort().values
    logits = torch.cat([model.forward_head(x) for x in depths]).float()
    return tokens[..., chosen], chosen, tokens.shape[2], logits


def _tokens(model: TracedViT, images: Tensor, **options: Unpack[PassOptions]) -> list[Tensor]:
    """The tokens of every depth, ``[B, N, D]`` each, prefix included; ``InputError`` if they are not seen."""
    trace = Trace(record_tokens=True)
    model(images, trace, **options)
    trace.check_tokens()
    return trace.tokens


def _read(model: TracedViT, x: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """One depth's tokens ``[T, D]``, prefix included, as the fields of ``PatchTokens``."""
    prefix, classes = model.config.num_prefix_tokens, model.config.num_classes
    tokens = model.final_norm(x)
    read, norms = tokens[prefix:].float(), x[prefix:].float().norm(dim=1)  # [N, D], [N]
    if not classes:
        none = read.new_empty(len(read), 0)
        return read, norms, none.long(), none
    likely = model.to_scores(model.read_patches(x).float()).topk(min(count, classes))
    return read, norms, likely.indices, likely.values


def norm_outliers(norms: NDArray[np.floating]) -> NDArray[np.bool_]:
    """Which tokens are outliers: far longer than the rest.

    Large networks turn a few patches of little content into memory for the whole image, whose tokens are many times as
    long and get much attention ("Vision Transformers Need Registers", Darcet et al., 2023,
    https://arxiv.org/abs/2309.16588; attention sinks). That paper reads a threshold off the histogram of each model.
    Here one rule serves all: a token is an outlier if its norm exceeds Tukey's outer fence, the third quartile plus
    three interquartile ranges, and is at least twice the median.

    Args:
        norms: Lengths of tokens, in any shape; NaN where there is no token.

    Returns:
        bool, of the same shape.
    """
    present = norms[~np.isnan(norms)]
    if not present.size:
        return np.zeros(norms.shape, bool)
    low, median, high = np.quantile(present, (0.25, 0.5, 0.75))
    return np.nan_to_num(norms) > max(high + 3 * (high - low), LEAST_RATIO * median)
