"""The length of patch tokens, and the few that are far longer than the rest."""

import numpy as np
from numpy.typing import NDArray

LEAST_RATIO = 2.0
"""An outlier is at least this many times as long as the median token."""


def norm_outliers(norms: NDArray[np.floating]) -> NDArray[np.bool_]:
    """Which tokens are outliers: far longer than the rest.

    Large networks turn a few patches of little content into memory for the whole image, whose tokens are many times as
    long and get much attention ("Vision Transformers Need Registers", Darcet et al., 2023,
    https://arxiv.org/abs/2309.16588; attention sinks). That paper reads a threshold off the histogram of each model.
    Here one rule serves all: a token is an outlier if its norm exceeds Tukey's outer fence, the third quartile plus
    three interquartile ranges, and is at least twice the median.

    Args:
        norms: Of any shape; NaN where there is no token.

    Returns:
        bool, of the same shape.
    """
    present = norms[~np.isnan(norms)]
    if not present.size:
        return np.zeros(norms.shape, bool)
    low, median, high = np.quantile(present, (0.25, 0.5, 0.75))
    return np.nan_to_num(norms) > max(high + 3 * (high - low), LEAST_RATIO * median)
