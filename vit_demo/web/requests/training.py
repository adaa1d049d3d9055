"""Training of a visitor's network: begun by one request, shown by those that follow, ended when none does.

A run is a job like others, in a pool of its own at the lowest priority: one for each address, which begins another by
ending it, and two at once, short ones first. It is known by an unguessable name. Its weights stay in memory for an
hour.
"""

from __future__ import annotations

import base64
import io
import secrets
import tempfile
import time
import zipfile
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import Tensor

from vit_demo.errors import InputError
from vit_demo.images import digit_to_tensor, to_mnist
from vit_demo.methods import attention_from, to_grid
from vit_demo.model import ViT, ViTConfig
from vit_demo.service.engine import get_engine
from vit_demo.service.job import Cancelled, Job, owner, report
from vit_demo.service.job_limits import MEMORY_OF_TRAINING
from vit_demo.trace import OwnViT, Trace
from vit_demo.training.small import (
    BATCH_SIZE,
    NUM_TRAIN,
    Choices,
    History,
    OnBatch,
    accuracy,
    predictions,
    quick_digits,
    random_network,
    train_small,
)
from vit_demo.web.catalog.menu import TRAINING_LIMITS
from vit_demo.web.requests import parse
from vit_demo.web.requests.payload import data_url
from vit_demo.web.requests.waiting import POLL_SECONDS
from vit_demo.weights.costs import num_operations, num_tokens, training_step
from vit_demo.weights.digit_folders import save_digits
from vit_demo.weights.kept_networks import Shares, keep, keep_before, trained_network

MAX_SECONDS = 60  # the longest run that may be chosen, and after which each ends
MAX_RUNS, RUNS_OF_ONE = 256, 64  # runs that are remembered, of all addresses and of one
MAX_OPERATIONS = 2e10  # operations of a step, softmax included: about a second of one core
SHOWN_LOSSES = 200  # points of the curve of the loss
SHOWN_MISTAKES = 12
LOOK_SECONDS = 0.5  # time between two looks at the visitor's digit
TOO_LARGE = "This network is too large to be trained here: choose a larger patch, fewer blocks or a smaller width."
NO_RUN = "This run is gone: train again with the same seed and number of steps."


@dataclass(eq=False)
class Run:
    """One training, as far as it has come.

    Attributes:
        digit: The visitor's digit, the network's input ``[1, 1, 28, 28]``; None without one.
        history: What was seen so far.
        look: The network's view of the digit.
        model: The name of the trained network; empty until it is done.
        before: The name of the network before the training.
        mistakes: Test digits that it gets wrong.
        job: The work.
        is_running: Whether it has begun.
    """

    digit: Tensor | None
    history: History
    look: dict[str, Any] | None = None
    model: str = ""
    before: str = ""
    mistakes: list[dict[str, Any]] = field(default_factory=list)
    job: Job[None] | None = None
    is_running: bool = False
    looked: float = 0.0


_runs: Shares[Run] = Shares(MAX_RUNS, RUNS_OF_ONE)


async def handle_training(request: dict[str, Any]) -> dict[str, Any]:
    """Begins, shows or ends a run.

    Args:
        request: ``{"begin": {...}, "source": ...}`` with ``config``, the fields of ``ViTConfig``, those of ``Choices``,
            and perhaps ``from``, the name of a trained network to go on with; or ``{"run": name}``; or ``{"run": name,
            "cancel": True}``.

    Returns:
        ``run``, ``state`` ("waiting", "running", "done" or "ended"), ``step`` of ``steps``, ``wait`` (about how many
        seconds until it begins), ``seconds``, ``seed``, ``loss``, ``accuracy``, ``look``, ``model``, ``before`` and
        ``mistakes``.
    """
    name = request.get("run")
    if name is None:
        name = _begin(request.get("begin"), request.get("source"))
    run = _runs.get(name) if isinstance(name, str) else None
    if run is None or run.job is None:
        raise InputError(NO_RUN)
    if request.get("cancel") is True:
        run.job.cancel()
    is_done = await run.job.poll_async(POLL_SECONDS)
    if is_done:
        with suppress(Cancelled):
            run.job.result()
    return _shown(name, run, is_done)


def _begin(fields: Any, source: Any) -> str:
    if not isinstance(fields, dict):
        raise InputError("A training needs the network and what else was chosen: reload the page.")
    config, start = _config(fields.get("config")), None
    if fields.get("from") is not None:
        start = trained_network(parse.short_string(fields["from"], "network"))
        if start.config != config:
            raise InputError("The network to go on with has another shape: train a new one.")
    known = {name: fields[name] for name in Choices.__dataclass_fields__ if fields.get(name) is not None}
    chosen = Choices(**known)
    if chosen.seconds > MAX_SECONDS or (chosen.steps or 0) > 100 * MAX_SECONDS:
        raise InputError(f"A training here takes at most {MAX_SECONDS} seconds.")
    who, seconds, step = owner.get(), MAX_SECONDS if chosen.steps else chosen.seconds, training_step(config, BATCH_SIZE)
    expected = min(seconds, chosen.steps * step.seconds) if chosen.steps else seconds
    run, name = Run(None, History(chosen.seed), before=fields.get("from") or ""), secrets.token_urlsafe(16)
    read = _digit_source(source)

    def work() -> None:
        run.is_running = True
        until = time.monotonic() + seconds
        if read is not None:
            run.digit = digit_to_tensor(to_mnist(read.read()))[0]

        def keep_going() -> None:
            report(len(run.history.loss), run.history.steps)

        def on_step(model: ViT, history: History) -> bool:
            run.history = history
            keep_going()
            if run.digit is not None and time.monotonic() - run.looked > LOOK_SECONDS:
                run.look = _look(model, run.digit)
                run.looked = time.monotonic()
            return time.monotonic() > until  # a minute of the clock, however many share the machine

        def before() -> ViT:
            return random_network(config, chosen.seed).eval().requires_grad_(False)

        begun = None if start is None else start.model  # built here, since that takes time
        model, run.history = train_small(config, start=begun, on_step=on_step, on_batch=keep_going, **known)
        run.look = None if run.digit is None else _look(model, run.digit)
        run.mistakes = _mistakes(model, keep_going)
        if start is None:
            run.before = keep_before(before, config, accuracy(before(), keep_going), who)
        run.model = keep(model, run.history.accuracy[-1][1], who)

    run.job = get_engine().jobs.submit(("train", name), work, "training", step.nbytes, expected)
    _runs.put(name, run, who, 1)
    return name


def _config(fields: Any) -> ViTConfig:
    config = read_config(fields)
    cost = training_step(config, BATCH_SIZE)
    too_much = cost.operations > MAX_OPERATIONS or cost.nbytes > MEMORY_OF_TRAINING
    if too_much or is_too_large(config):
        raise InputError(TOO_LARGE)
    return config


def read_config(fields: Any) -> ViTConfig:
    """A network by the fields of ``ViTConfig``; ``InputError`` if there is none like this."""
    try:
        return ViTConfig(**fields)
    except ValueError as error:
        raise InputError(f"{error}") from error
    except TypeError as error:
        raise InputError("This is no network: reload the page.") from error


def is_too_large(config: ViTConfig) -> bool:
    """Whether a network is above one of the ``TRAINING_LIMITS``."""
    tokens = num_tokens(config, config.patch_size)
    counts = {
        "parameters": config.num_parameters,
        "tokens": tokens,
        "operations": num_operations(config, config.patch_size, tokens),
        "depth": config.depth,
    }
    return any(counts[name] > most for name, most in TRAINING_LIMITS.items())


def _digit_source(value: Any) -> Any:
    """The picture of a request, if it is a drawing or one of the example digits."""
    if not isinstance(value, dict):
        return None
    for name in ("drawing", "digit"):
        if value.get(name) is not None:
            return parse.PICTURE_FIELDS[name](value[name])
    return parse.example_source(value["example"]) if value.get("example") in [*parse.EXAMPLE_DIGITS] else None


@torch.no_grad()
def _look(model: ViT, digit: Tensor) -> dict[str, Any]:
    """The prediction of a digit, and what its class token, or the mean of its tokens, attends to in the last block."""
    model.eval()
    logits = OwnViT(model)(digit, trace := Trace())
    probabilities = logits.softmax(1)[0]
    query = 0 if model.config.class_token else None
    values = to_grid(attention_from(trace, trace.num_blocks - 1, query).mean(1), trace)[0]
    label = int(probabilities.argmax())
    return {"label": str(label), "probability": float(probabilities[label]), "map": values.tolist()}


def _mistakes(model: ViT, on_batch: OnBatch) -> list[dict[str, Any]]:
    digits, labels = (part[NUM_TRAIN:] for part in quick_digits())
    found = predictions(model, on_batch)
    wrong = (found != labels).nonzero()[:SHOWN_MISTAKES, 0].tolist()
    return [
        {
            "example": parse.TEST_DIGITS[i],
            "label": int(labels[i]),
            "predicted": int(found[i]),
            "digit": _as_png(digits[i, 0]),
        }
        for i in wrong
    ]


def _as_png(digit: Tensor) -> str:
    low, high = digit.min(), digit.max()
    return data_url(Image.fromarray((255 * (high - digit) / (high - low)).round().byte().numpy()))  # ink on paper


def archive(name: str) -> dict[str, str]:
    """``{"zip": ...}``, base64 of an archive with a folder of a trained network for ``vit_demo.explore``."""
    found = trained_network(name)
    with tempfile.TemporaryDirectory() as folder:
        path = save_digits(Path(folder), found.model, History(0, accuracy=[(0, found.accuracy)]))
        with zipfile.ZipFile(buffer := io.BytesIO(), "w") as file:
            file.write(path, f"vit_demo-digits/{path.name}")
    return {"zip": base64.b64encode(buffer.getvalue()).decode("ascii")}


def _shown(name: str, run: Run, is_done: bool) -> dict[str, Any]:
    history = run.history
    losses = list(history.loss)
    size = max(1, len(losses) // SHOWN_LOSSES)
    means = [sum(part) / len(part) for part in (losses[i : i + size] for i in range(0, len(losses), size))]
    state = ("done" if run.model else "ended") if is_done else "running" if run.is_running else "waiting"
    return {
        "run": name,
        "state": state,
        "step": len(losses),
        "steps": history.steps,
        "wait": round(get_engine().jobs.seconds_until(run.job)) if run.job and state == "waiting" else 0,
        "seconds": round(history.seconds, 1),
        "seed": history.seed,
        "loss": [[min(len(losses), size * (i + 1)), round(value, 4)] for i, value in enumerate(means)],
        "accuracy": [[step, value] for step, value in history.accuracy],
        "look": run.look,
        "model": run.model,
        "before": run.before,
        "mistakes": run.mistakes,
    }
