"""What the stage may ask about a result that it shows, beyond what came with it.

The page calls ``ask`` and waits for what it returns. Work that takes longer than a moment runs on as a job; the page
then hears how far it is, and asks the same again. A request says all that it takes to compute its answer, so nothing
has to be started, numbered or cancelled, equal requests of several visitors share one job, and any server can answer.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vit_demo import methods
from vit_demo.errors import InputError
from vit_demo.inference.cache import ByteCache
from vit_demo.inference.engine import Engine, get_engine
from vit_demo.inference.exploration import Exploration
from vit_demo.inference.jobs import Cancelled, Job
from vit_demo.web import handlers, requests
from vit_demo.web.limits import ANSWER_BYTES
from vit_demo.web.method_docs import method_html
from vit_demo.web.payload import block_payload, encode, payload
from vit_demo.weights import Preset

Answer = dict[str, Any]

PATIENCE = 0.4
"""Seconds that one call waits for the answer before it tells how far the work is."""

FAILED = "This could not be computed: try another picture or a larger patch size."
"""Said where the reason is a bug, which is logged."""

_answers: ByteCache[Answer] = ByteCache(ANSWER_BYTES, lambda answer: len(json.dumps(answer)))
_maps: ByteCache[NDArray[np.float32]] = ByteCache(ANSWER_BYTES, lambda values: values.nbytes)


@dataclass(frozen=True)
class View:
    """Which map of a result.

    Attributes:
        method: One of ``methods.METHODS``.
        block: From 0; -1 for the last.
        head: From 0; None for the mean of all.
        query: A patch, counted row by row; None for the class token.
        direction: ``"from"`` or ``"to"``.
        label: A class by its index; None for the predicted one.
    """

    method: str
    block: int = -1
    head: int | None = None
    query: int | None = None
    direction: str = "from"
    label: int | None = None

    @classmethod
    def of(cls, sent: dict[str, Any]) -> View:
        """Reads a request's fields.

        Raises:
            InputError: If one is not what it should be.
        """
        method = requests.text(sent.get("method"), "method")
        methods.find_method(method)

        def number(name: str, lowest: int = 0) -> int | None:
            value = sent.get(name)
            return None if value is None else requests.integer(value, name, lowest)

        block, head = number("block", -1), number("head", -1)
        direction = sent.get("direction", "from")
        if direction not in ("from", "to"):
            raise InputError('There is no such direction: choose "from" or "to".')
        return cls(
            method,
            -1 if block is None else block,
            None if head == -1 else head,
            number("query"),
            direction,
            number("label"),
        )

    def compute(self, result: Exploration) -> NDArray[np.float32]:
        """The map's true values ``[rows, cols]``."""
        if self.method == "attention":
            query = None if self.query is None else divmod(self.query, result.grid[1])
            return result.attention(self.block, self.head, query, self.direction)  # type: ignore[arg-type]
        if self.method == "value_weighted":
            return result.value_weighted(self.block)
        return result.heatmap(self.method, self.label)


@dataclass(frozen=True)
class Subject:
    """The result that a request is about, and the engine that makes it."""

    engine: Engine
    preset: Preset
    request: requests.ResultRequest

    def result(self) -> Exploration:
        """Cached, or computed anew."""
        request = self.request
        size = self.preset.check_patch_size(request.patch_size)
        whole = self.engine.explore_source(request.source, self.preset, size, request.fit)
        if not request.dropped:
            return whole
        rows, cols = whole.grid
        if request.dropped[-1] >= rows * cols:
            raise InputError(f"There is no patch {request.dropped[-1]}: the grid has {rows} rows and {cols} columns.")
        dropped = tuple(divmod(patch, cols) for patch in request.dropped)
        return self.engine.explore_source(request.source, self.preset, size, request.fit, dropped)

    def values(self, view: View) -> NDArray[np.float32]:
        """A map, which is often shown first and tested then; so it is computed once."""
        key = ("values", self.request.key, view)
        return self.engine.cached(_maps, key, lambda: view.compute(self.result()), self.lane(view))

    def lane(self, view: View) -> str:
        """Where a map is computed."""
        return "slow" if methods.METHODS[view.method].many_passes else self.preset.task


def map_of(subject: Subject, sent: Answer) -> Answer:
    """``{"map": float32 [N]}``: the true values of a map, patch by patch."""
    return {"map": encode(subject.values(View.of(sent)).astype(np.float32))}


def test(subject: Subject, sent: Answer) -> Answer:
    """Deletion and insertion of a map beside random orders; see ``metrics.Faithfulness``."""
    view = View.of(sent)
    found = subject.result().faithfulness(subject.values(view), label=view.label)
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


def randomization(subject: Subject, sent: Answer) -> Answer:
    """How similar a method's map stays while the weights are randomized; see ``metrics.randomization``."""
    view = View.of(sent)
    return {"correlations": subject.result().randomization(view.method, view.label)}


def logit_lens(subject: Subject, sent: Answer) -> Answer:
    """The likeliest label before the first block and after each."""
    firsts = [depth[0] for depth in subject.result().logit_lens()]
    return {"depths": [{"label": label, "probability": probability} for label, probability in firsts]}


def result_of(subject: Subject, sent: Answer) -> Answer:
    """What the stage shows of the result, as when some of its patches are dropped."""
    return payload(subject.result(), subject.request)


def block_of(subject: Subject, sent: Answer) -> Answer:
    """Another block's queries and keys, for a grid too fine to send them all at once."""
    return block_payload(subject.result(), requests.integer(sent.get("block"), "block"))


ANSWERS: dict[str, tuple[Callable[[Subject, Answer], Answer], bool]] = {
    "map": (map_of, False),
    "block": (block_of, False),
    "logit_lens": (logit_lens, False),
    "result": (result_of, False),
    "test": (test, True),
    "randomization": (randomization, True),
}
"""What may be asked for, and whether it takes many passes."""

FIELDS = ("about", "method", "block", "head", "query", "direction", "label")
"""Of a request, beside the result it is about; others are ignored."""


async def ask(sent: Any) -> Answer:
    """Answers a request of the stage, or says how far its answer is.

    Args:
        sent: ``about``: one of ``ANSWERS``, with the ``source`` of the result and the fields of a ``View``; or
            ``"method_docs"`` with a ``method``.

    Returns:
        ``{"answer": ...}``; or ``{"error": one sentence}``; or ``{"done", "total"}`` while it is being computed
        (``total`` 0 where that is not known): then ask the same again.
    """
    try:
        found = await _answer_or_job(sent)
        if not isinstance(found, Job):
            return {"answer": found}
        if not await found.poll_async(PATIENCE):
            return {"done": found.done, "total": found.total}
        return {"answer": found.result()}
    except InputError as error:
        return {"error": str(error)}
    except Cancelled:
        return {"done": 0, "total": 0}
    except Exception:
        logging.getLogger(__name__).exception("A request of the page failed")
        return {"error": FAILED}


async def _answer_or_job(sent: Any) -> Answer | Job[Answer]:
    if not isinstance(sent, dict):
        raise InputError("The request is not an object: reload the page.")
    about = requests.text(sent.get("about"), "request")
    if about == "method_docs":
        return {"html": method_html(requests.text(sent.get("method"), "method"))}
    if about not in ANSWERS:
        raise InputError(f"There is no request {about!r}: choose one of {', '.join(ANSWERS)}.")
    compute, many_passes = ANSWERS[about]
    request = requests.ResultRequest.of(sent.get("source"))
    fields = {name: sent[name] for name in FIELDS if sent.get(name) is not None}
    view = View.of(fields) if "method" in fields else None
    key: Hashable = ("answer", request.key, about, view, fields.get("block") if view is None else None)
    answer = _answers.get(key)
    if answer is not None:
        return answer
    engine = get_engine()
    preset = await handlers.preset_of(request.name)
    subject = Subject(engine, preset, request)
    lane = "slow" if many_passes else preset.task if view is None else subject.lane(view)

    def work() -> Answer:
        _answers.put(key, found := compute(subject, fields))
        return found

    return engine.jobs.submit(key, work, lane)
