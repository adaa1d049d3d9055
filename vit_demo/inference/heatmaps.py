"""How a result computes a map by the registry's methods, and tests it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from vit_demo import metrics
from vit_demo.checks import whole_number
from vit_demo.errors import InputError
from vit_demo.inference.sequence import as_map, kept_patches, other_class, query_token
from vit_demo.methods import Progress, attention_from, find_method, to_grid

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vit_demo.inference.exploration import Exploration, Label, Query


def heatmap(
    ex: Exploration, name: str, label: Label, against: Label, progress: Progress | None, options: dict[str, Any]
) -> NDArray[np.float32]:
    """See ``Exploration.heatmap``."""
    method = find_method(name)
    method.check_options(options)
    integers = [option.name for option in method.options if option.kind == "integer" and option.name in options]
    options |= {name: int(options[name]) for name in integers}  # NumPy's are no seeds for torch
    # An unknown class is refused even if the map does not depend on it.
    target = ex.target(label) if method.class_specific or label is not None else None
    if against is not None:
        if not method.compares_classes:
            raise InputError(f"{name} does not compare two classes: choose another method, or leave against out.")
        options["against"] = other_class(ex, target, against)
    token = query_token(ex, options.get("block", -1), options.get("head"), options.get("query"))
    if method.offers("query"):
        options["query"] = token
    if method.cost == "trace":
        return to_grid(method.function(ex.trace, **options), ex.trace)[0].cpu().numpy()
    if method.reports_progress:
        options["progress"] = progress
    arguments = (ex.pixels, target) if method.class_specific else (ex.pixels,)
    options["kept_patches"] = kept_patches(ex)
    return ex.run_on_model(method.function, *arguments, slow=method.is_slow, **options)[0].numpy()


def attention_maps(ex: Exploration, query: Query) -> NDArray[np.float32]:
    """See ``Exploration.attention_maps``."""
    token = query_token(ex, -1, None, query)
    values = torch.stack([attention_from(ex.trace, block, token)[0] for block in range(ex.trace.num_blocks)])
    return to_grid(values, ex.trace).cpu().numpy()


def faithfulness(
    ex: Exploration,
    method: str | NDArray[np.floating],
    label: Label,
    against: Label,
    baseline: metrics.Baseline,
    **options: Any,
) -> metrics.Faithfulness:
    """See ``Exploration.faithfulness``."""
    target = ex.target(label)
    options = {
        **options,
        "against": None if against is None else other_class(ex, target, against),
        "steps": whole_number(options["steps"], "The number of steps", 1),
        "seeds": whole_number(options["seeds"], "The number of random orders", 0),
    }
    replacement = metrics.baseline_image(baseline, ex.pixels, ex.patch_size, ex.preset.mean, ex.preset.std)
    if isinstance(method, str):
        compares = against is not None and find_method(method).compares_classes
        method = ex.heatmap(method, target, against=against if compares else None)
    values = as_map(ex, method)
    if not np.isfinite(values).all():
        raise InputError("A value of this map is not a number: give each patch one.")
    return ex.run(metrics.faithfulness, target, torch.from_numpy(values), replacement, slow=True, **options)
