"""Networks that a visitor teaches: what the head reads of each picture is kept, and the head computed anew each time.

A request holds all examples, so nothing is lost if what is kept is gone; only new ones take a forward pass.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vit_demo.defaults import MAX_TAUGHT_CLASSES, MAX_TAUGHT_PICTURES
from vit_demo.errors import InputError
from vit_demo.inference.inputs import ModelInput
from vit_demo.service.engine import get_engine
from vit_demo.service.job import Job, Turn, owner, report
from vit_demo.service.job_limits import USUAL_SECONDS
from vit_demo.service.source import pool_of
from vit_demo.teaching.teach import fitted
from vit_demo.trace.other_head import read_token
from vit_demo.web.catalog.menu import model_entry
from vit_demo.web.requests import parse
from vit_demo.web.requests.packing import pack
from vit_demo.weights import Preset
from vit_demo.weights.kept_networks import Shares, keep_taught
from vit_demo.weights.taught_heads import check_labels, taught_preset

MAX_TOKENS = 2000  # tokens kept for all addresses: 4 MB of a network 512 wide, at most 64 MB of any
NOT_SEPARABLE = "These pictures could not be told apart at all: add others."

_tokens: Shares[NDArray[np.float32]] = Shares(MAX_TOKENS, MAX_TAUGHT_PICTURES)


@dataclass(frozen=True)
class TeachRequest:
    """What is to be taught: a source for each example, of the network whose head is replaced.

    Attributes:
        name: The network's.
        labels: Those of the classes that have examples.
        examples: The index of the class and the source of each example.
    """

    name: str
    labels: tuple[str, ...]
    examples: tuple[tuple[int, parse.ResultRequest], ...]

    @classmethod
    def parse(cls, fields: dict[str, Any]) -> TeachRequest:
        """Checks the fields of a request; ``InputError`` if one is not valid.

        They are ``preset``, ``patch_size`` and ``fit`` as in the ``source`` of a result, and ``classes``, each with a
        ``name`` and ``examples``, which hold a picture as that does.
        """
        classes = fields.get("classes")
        if not isinstance(classes, list) or not all(
            isinstance(one, dict) and isinstance(one.get("examples"), list) and one["examples"] for one in classes
        ):
            raise InputError("Each class needs a picture: add one.")
        if sum(len(one["examples"]) for one in classes) > MAX_TAUGHT_PICTURES:
            raise InputError("At most {0} pictures can be taught: remove one first.", MAX_TAUGHT_PICTURES)
        names = [one.get("name") for one in classes]
        labels = check_labels(names, MAX_TAUGHT_CLASSES, least=1)
        shared = {name: fields.get(name) for name in ("preset", "patch_size", "fit")}
        examples = tuple(
            (index, parse.ResultRequest.parse({**picture, **shared} if isinstance(picture, dict) else None))
            for index, one in enumerate(classes)
            for picture in one["examples"]
        )
        return cls(parse.preset_name(shared["preset"]), labels, examples)


def teach_job(request: TeachRequest, preset: Preset) -> Job[bytes]:
    """The job that teaches the network of a request, ``preset``, with a turn for each picture.

    Returns:
        A packed reply: ``{"result": {"model", "right", "guessed", "count"}}``,
        where ``model`` is the new network for the menu, None with fewer than two classes, ``right`` how many of
        ``count`` examples a head gets right that has not seen them, None if a class has but one, and ``guessed`` how
        many a guess would.
    """
    who, engine, base = owner.get(), get_engine(), preset.own
    size = base.check_patch_size(request.examples[0][1].patch_size)

    def token(source: parse.ResultRequest) -> NDArray[np.float32]:
        given = ModelInput.of(source.source.read(), base, size, source.fit)
        found = engine.run_on_model(base, size, read_token, given.pixels)[0].numpy()
        _tokens.put(source.key.hex(), found, who, 1)
        return found

    def work() -> Generator[Turn, None, bytes]:
        read: list[Any] = [_tokens.get(source.key.hex()) for _, source in request.examples]
        missing = [index for index, found in enumerate(read) if found is None]
        for number, index in enumerate(missing):
            source = request.examples[index][1]
            yield source.source.turn(base, size, times=len(missing))
            report(number, len(missing))
            read[index] = token(source)
        if missing:
            yield last
        return pack({"result": _taught(request, base, read, who)})

    last = Turn(pool_of(base, seconds=USUAL_SECONDS))
    return engine.jobs.submit(("teach", request, who), work, *last)


def _taught(request: TeachRequest, base: Preset, tokens: list[NDArray[np.float32]], who: str) -> dict[str, Any]:
    classes = [index for index, _ in request.examples]
    counts = np.bincount(classes, minlength=len(request.labels))
    if len(request.labels) < 2:
        return {"model": None, "right": None, "count": len(classes)}
    found = fitted(tokens, classes, request.labels)
    head = np.column_stack([found.weight, found.bias]).astype(np.float16).astype(np.float32)  # as a link holds it
    if not np.isfinite(head).all():
        raise InputError(NOT_SEPARABLE)
    right = int((found.left_out.argmax(1) == classes).sum())
    taught = taught_preset(base, request.examples[0][1].patch_size, request.labels, head)
    return {
        "model": model_entry(keep_taught(taught, who)),
        "right": right if counts.min() > 1 else None,
        "guessed": round(len(classes) / len(request.labels)),
        "count": len(classes),
    }
