"""How a result computes and tests maps; the functions here are also methods of ``Exploration``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from vit_demo import metrics
from vit_demo.checks import whole_number
from vit_demo.defaults import DEFAULT_METHOD, IMPROBABLE, NUM_RANDOM_ORDERS, NUM_STEPS, Baseline
from vit_demo.errors import InputError, warn
from vit_demo.inference.result import Label, Query, Result
from vit_demo.inference.sequence import WITHOUT_CLASS, as_map, class_index, other_class, query_token
from vit_demo.methods import Method, Progress, attention_from, find_method, to_grid
from vit_demo.methods.attention_rows import attention_rows
from vit_demo.methods.targets import input_gradient

Score = Callable[["Tensor"], "Tensor"]  # from logits ``[B, K]`` to what is explained, ``[B]``

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor


class Map(np.ndarray[Any, np.dtype[np.float32]]):
    """A map, float32 ``[rows, cols]``, that knows its method; what is computed from it does not."""

    method: str | None = None

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        """What a function of NumPy makes of a map, which is none."""
        return array[()] if return_scalar or not array.ndim else np.asarray(array)

    @classmethod
    def of(cls, values: Tensor, method: str) -> Map:
        """The map ``[rows, cols]`` of a method."""
        found = values.cpu().numpy().view(cls)
        found.method = method
        return found


def heatmap(
    ex: Result,
    method: str,
    label: Label | Score = None,
    progress: Progress | None = None,
    *,
    against: Label = None,
    **options: Any,
) -> NDArray[np.float32]:
    """The map of any registered method; see ``vit_demo.methods()``.

    Args:
        ex: The result.
        method: Its name.
        label: A label or its index, for a method that depends on the class; the predicted class for None. Or a function
            from the logits ``[B, K]``, or from the embedding of a network without classes, to the numbers ``[B]`` that
            are explained.
        progress: Called with the passes done and their total, for a method that takes many.
        against: Another class: the map then shows the evidence for the first rather than for this one.
        **options: The method's own, such as ``block``, ``query``, ``window`` or ``budget``.

    Returns:
        float32 ``[rows, cols]``, in the method's unit; ``overlay`` knows from it how it is drawn.

    Raises:
        InputError: If there is no such method, it has no such option, or a value is out of range.
        LabelError: If there is no such class.

    Warns:
        UserWarning: If a label is given to a method that does not depend on it.
    """
    found = find_method(method)
    found.check_options(options)
    integers = [option.name for option in found.options if option.kind == "integer" and option.name in options]
    options |= {name: int(options[name]) for name in integers}  # NumPy's are no seeds for torch
    if label is not None and not found.class_specific:
        warn(WITHOUT_CLASS.format(method))
    target = _target(ex, label, against) if found.class_specific else None
    options |= comparison(ex, found, target, against)
    token = query_token(ex, options.get("block", -1), options.get("head"), options.get("query"))
    if found.offers("query"):
        options["query"] = token
    if found.cost == "trace":
        return Map.of(to_grid(found.function(ex.trace, **options), ex.trace)[0], found.name)
    if found.reports_progress:
        options["progress"] = progress
    arguments = (target,) if found.class_specific else ()
    return Map.of(ex.run(found.function, *arguments, slow=found.is_slow, **options)[0], found.name)


def _target(ex: Result, label: Label | Score, against: Label) -> Any:
    """The index of a class, or the function that is given in its place."""
    if not callable(label):
        return class_index(ex, label)
    if against is not None:
        raise InputError("A function of the logits is compared with nothing: let it subtract what it should.")
    return label


def gradient(ex: Result, label: Label | Score = None, *, against: Label = None) -> NDArray[np.float32]:
    """The gradient of a class's logit with respect to the network's input, ``ex.pixels``.

    Args:
        ex: The result.
        label: As in ``heatmap``.
        against: Another class: the gradient of the difference of both logits.

    Returns:
        float32 ``[C, height, width]``, in the unit of the logit for one standard deviation of a channel.

    Raises:
        LabelError: If there is no such class.
    """
    target = _target(ex, label, against)
    other = None if against is None else other_class(ex, target, against)
    found: NDArray[np.float32] = ex.run(input_gradient, target, other)[0].numpy()
    return found


def comparison(ex: Result, method: Method, target: int | None, against: Label) -> dict[str, int]:
    """The option ``against`` of a method, the index of a class; none for None.

    ``InputError`` if the method does not compare two classes, ``LabelError`` if there is no such class, or no other.
    """
    if against is None:
        return {}
    if not method.compares_classes:
        raise InputError(f"{method.name} does not compare two classes: choose another method, or leave against out.")
    return {"against": other_class(ex, target, against)}


def attention_maps(ex: Result, query: Query = None) -> NDArray[np.float32]:
    """What one token attends to in every block and head: float32 ``[blocks, heads, rows, cols]``.

    ``query`` is as in ``attention``; ``InputError`` if there is no such patch.
    """
    token, trace = query_token(ex, -1, None, query), ex.trace
    if token is None:
        values = torch.stack([attention_from(trace, block, token)[0] for block in range(trace.num_blocks)])
    else:  # one product for all blocks
        queries = torch.stack([q[0, :, token, None].float() for q in trace.q])  # [blocks, H, 1, d]
        keys = torch.stack([k[0].float() for k in trace.k])
        values = attention_rows(queries, keys)[:, :, 0]  # [blocks, H, N]
    return to_grid(values, trace).cpu().numpy()


def faithfulness(
    ex: Result,
    method: str | NDArray[np.floating] = DEFAULT_METHOD,
    steps: int = NUM_STEPS,
    label: Label | Score = None,
    baseline: Baseline = "mean",
    seeds: int = NUM_RANDOM_ORDERS,
    progress: Progress | None = None,
    *,
    against: Label = None,
) -> metrics.Faithfulness:
    """Tests a map: its deletion and insertion curves beside those of random orders.

    Args:
        ex: The result.
        method: Name of a method, or a map ``[rows, cols]`` of your own.
        steps: How many times patches are replaced, or returned.
        label: Whose probability is measured, and whose map it is; the predicted class for None. Of a class with a
            probability below ``IMPROBABLE``, 0.1, the logit is measured, because there is little to lose; see
            ``Faithfulness.measured``. A function as in ``heatmap`` is measured itself.
        baseline: What replaces a patch: ``"mean"``, ``"blur"`` or ``"black"``; see ``metrics.baseline_image``.
        seeds: How many random orders.
        progress: Called with the number of pictures done and their total.
        against: Another class: the map is that of the first rather than this one, if the method compares classes, and
            the difference of both logits is measured.

    Raises:
        InputError: If there is no such method or baseline.
        LabelError: If there is no such class.
    """
    target = _target(ex, label, against)
    steps, seeds = whole_number(steps, "The number of steps", 1), whole_number(seeds, "The number of random orders", 0)
    if isinstance(method, str):
        found = find_method(method)
        other = against if found.compares_classes else None
        method = heatmap(ex, method, target if found.class_specific else None, against=other)
    values = as_map(ex, method)
    if not np.isfinite(values).all():
        raise InputError("A value of this map is not a number: pass a number for each patch.")
    order = torch.from_numpy(values)
    return delete_and_insert(ex, order, target, baseline, against=against, steps=steps, seeds=seeds, progress=progress)


def delete_and_insert(
    ex: Result,
    values: Tensor | int,
    label: Label | Score,
    baseline: Baseline,
    *,
    against: Label = None,
    progress: Progress | None = None,
    **options: Any,
) -> metrics.Faithfulness:
    """Deletion and insertion in the order of a map ``[rows, cols]``, or in the random order of that number."""
    target = _target(ex, label, against)
    replacement = metrics.baseline_image(baseline, ex.pixels, ex.patch_size, ex.preset.mean, ex.preset.std)
    options |= {
        "against": None if against is None else other_class(ex, target, against),
        "by_logit": not callable(target) and bool(ex.preset.scores != "none" and ex.probabilities[target] < IMPROBABLE),
    }
    return ex.run(metrics.faithfulness, target, values, replacement, slow=True, progress=progress, **options)
