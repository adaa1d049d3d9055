"""What the stage may ask about a result that it shows, beyond what came with it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import cachetools
import numpy as np
from numpy.typing import NDArray

from vit_demo.inference.engine import explorer_on
from vit_demo.inference.exploration import Exploration
from vit_demo.methods import Progress
from vit_demo.web.asking import Asker
from vit_demo.web.making import how_it_is_made
from vit_demo.web.payload import encode, payload

View = dict[str, Any]
"""Which map: ``method`` as in ``methods.METHODS``, and where it matters ``block``, ``head`` (-1 for the mean),
``query`` (a patch, or None for the class token), ``direction`` and ``label`` (a class by its index)."""

FORGOTTEN = "This result was forgotten: draw or choose again."
_lock = threading.Lock()


def map_of(result: Exploration, question: View, progress: Progress) -> dict[str, Any]:
    """``{"map": float32 [N]}``: the true values of a map, patch by patch."""
    return {"map": encode(_values(result, question, progress).astype(np.float32))}


def test(result: Exploration, question: View, progress: Progress) -> dict[str, Any]:
    """Deletion and insertion of a map beside random orders; see ``metrics.Faithfulness``."""
    found = result.faithfulness(_values(result, question, progress), label=question.get("label"), progress=progress)
    beaten = found.orders_beaten
    return {
        "fractions": found.fractions.tolist(),
        "deletion": {
            "curve": found.deletion.tolist(),
            "random": found.random_deletion.tolist(),
            "area": found.deletion_area,
            "random_area": found.random_deletion_area,
            "beaten": beaten[0],
        },
        "insertion": {
            "curve": found.insertion.tolist(),
            "random": found.random_insertion.tolist(),
            "area": found.insertion_area,
            "random_area": found.random_insertion_area,
            "beaten": beaten[1],
        },
    }


def forgetting(result: Exploration, question: View, progress: Progress) -> dict[str, Any]:
    """How alike a method's map stays while the network forgets, from its head down; see ``metrics.randomization``."""
    return {"alike": result.randomisation(question["method"], question.get("label"), progress)}


def lens(result: Exploration, question: View, progress: Progress) -> dict[str, Any]:
    """The likeliest label before the first block and after each."""
    firsts = [depth[0] for depth in result.lens()]
    return {"depths": [{"label": label, "probability": probability} for label, probability in firsts]}


def without(result: Exploration, question: View, progress: Progress) -> dict[str, Any]:
    """What the stage shows of the result when some of its ``patches`` are knocked out."""
    patches = [divmod(int(patch), result.grid[1]) for patch in question["patches"]]
    return payload(explorer_on().remember(result.without(patches)))


QUESTIONS: dict[str, Callable[[Exploration, View, Progress], dict[str, Any]]] = {
    "map": map_of,
    "test": test,
    "forgetting": forgetting,
    "lens": lens,
    "without": without,
}


def answer(question: View, progress: Progress) -> dict[str, Any]:
    """Answers a question of the stage: ``about`` one of ``QUESTIONS``, of the result with the ``key``.

    ``about`` "making" asks how maps of a ``method`` are made, whatever the result.

    Raises:
        ValueError: If the result is no longer remembered, or there is no such question, method, class or patch.
    """
    if question.get("about") == "making":
        return {"html": how_it_is_made(str(question.get("method")))}
    work = QUESTIONS.get(str(question.get("about")))
    if work is None:
        raise ValueError(f"There is no question {question.get('about')!r}: choose one of {', '.join(QUESTIONS)}.")
    result = explorer_on().recall(str(question.get("key")))
    if result is None:
        raise ValueError(FORGOTTEN)
    return work(result, question, progress)


def _name(result: Exploration, view: View, _: Progress) -> str:
    parts = ("method", "block", "head", "query", "direction", "label")
    return json.dumps([result.key, *(view.get(part) for part in parts)])


@cachetools.cached(cachetools.LRUCache(maxsize=64), key=_name, lock=_lock)  # a map is often shown, then tested
def _values(result: Exploration, view: View, progress: Progress) -> NDArray[np.float32]:
    method, label = view.get("method"), view.get("label")
    block = int(view.get("block", -1))
    if method == "attention":
        head, query = int(view.get("head", -1)), view.get("query")
        place = None if query is None else divmod(int(query), result.grid[1])
        return result.attention(block, None if head < 0 else head, place, view.get("direction", "from"))
    if method == "value_weighted":
        return result.value_weighted(block)
    if method in ("occlusion", "patch_dropping"):
        return getattr(result, method)(label, progress=progress)
    return result.heatmap(str(method), label)


ask = Asker(answer)
"""The one that the page asks."""
