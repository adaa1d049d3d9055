"""A small Vision Transformer of digits, trained from random weights while one watches."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from vit_demo.checks import whole_number
from vit_demo.errors import CheckpointError, InputError
from vit_demo.images import MNIST_MEAN, MNIST_STD
from vit_demo.model import ViT, ViTConfig
from vit_demo.resources import resource_folder
from vit_demo.training.loop import updates

DIGITS_FILE = resource_folder("checkpoints") / "digits.npz"  # by ``scripts/quick_digits.py``; first those to train on
NUM_TRAIN, NUM_TEST = 5000, 1000
BATCH_SIZE = 64
LEARNING_RATE = 2e-3
WEIGHT_DECAY = 0.05
MAX_SHIFT = 2  # pixels by which a training digit is moved at random
WARM_UP = 20  # steps in which the learning rate rises; they also tell how many steps fit into the seconds
NUM_CHECKS = 10  # measurements of the accuracy in a run
DEFAULT_CONFIG = ViTConfig(
    image_size=28, patch_size=7, in_channels=1, num_classes=10, embed_dim=64, depth=4, num_heads=4, mlp_ratio=2.0
)

OnBatch = Callable[[], object] | None

_seeding = threading.Lock()


@dataclass
class History:
    """The course of a training.

    Attributes:
        steps: How many it should have in all; 0 until that is known.
        loss: The mean cross-entropy of each step's batch, in nats.
        accuracy: Pairs of a number of steps and the share of ``NUM_TEST`` digits, never trained on, that are right.
        seconds: Time so far.
        seed: That of all random numbers: with as many steps, it gives the same network on the same machine.
    """

    seed: int
    steps: int = 0
    loss: list[float] = field(default_factory=list)
    accuracy: list[tuple[int, float]] = field(default_factory=list)
    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Choices:
    """The settings of a training, beside its network.

    Attributes:
        seconds: How long it trains, on one core.
        steps: How many batches of ``BATCH_SIZE`` digits, instead of seconds; None for those that fit into them.
        learning_rate: The highest; it rises in ``WARM_UP`` steps and falls linearly to 0.
        num_digits: How many digits to train on, at most ``NUM_TRAIN``.
        shuffle_labels: Whether the training digits get each other's labels: they can only be learned by heart.
        seed: That of all random numbers.
    """

    seconds: float = 30.0
    steps: int | None = None
    learning_rate: float = LEARNING_RATE
    num_digits: int = NUM_TRAIN
    shuffle_labels: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        """``InputError`` for a value that is out of range."""
        for name, low, high in (("seconds", 0.1, 3600.0), ("learning_rate", 0.0, 1.0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
                raise InputError(f"{name} must be a number from {low:g} to {high:g}, not {value!r:.40}.")
        if self.steps is not None and whole_number(self.steps, "steps", 1) > 1_000_000:
            raise InputError("steps must be at most 1,000,000.")
        if not 10 <= whole_number(self.num_digits, "num_digits") <= NUM_TRAIN:
            raise InputError(f"num_digits must be from 10 to {NUM_TRAIN}, not {self.num_digits}.")
        if whole_number(self.seed, "seed", 0) >= 1 << 63 or not isinstance(self.shuffle_labels, bool):
            raise InputError("seed must be below 2**63, and shuffle_labels True or False.")


def train_small(
    config: ViTConfig = DEFAULT_CONFIG,
    *,
    start: ViT | None = None,
    on_step: Callable[[ViT, History], object] | None = None,
    on_batch: OnBatch = None,
    **choices: float | int | bool | None,
) -> tuple[ViT, History]:
    """Trains a Vision Transformer on 5,000 digits of MNIST's training part, from random weights, on one core.

    AdamW on batches of 64 digits, each moved by up to two pixels. ``seconds`` become a number of steps by the time that
    the first 20 and the first measurement take.

    Args:
        config: The network: 28 pixels, one channel, ten classes.
        start: A network of this shape whose weights it starts from; random ones for None.
        on_step: Called after each step with the network and what was seen so far. If it returns True, the run ends with
            what was learned; what it raises ends it with nothing.
        on_batch: Called after each batch of digits that measures the network; what it raises ends the run as well.
        **choices: The fields of ``Choices``: ``seconds`` (30) or ``steps``, ``learning_rate`` (0.002), ``num_digits``
            (5,000), ``shuffle_labels`` (False), ``seed`` (0).

    Returns:
        The network in eval mode, and what was seen of the run.

    Raises:
        InputError: If the network is not for digits, or a choice is out of range.
        CheckpointError: If the digits are missing.

    Example:
        >>> model, history = vit_demo.train_small(seconds=10)
        >>> history.accuracy[-1]
        (420, 0.83)
    """
    if not isinstance(config, ViTConfig) or (config.image_size, config.in_channels, config.num_classes) != (28, 1, 10):
        raise InputError("A network of digits has image_size=28, in_channels=1 and num_classes=10.")
    try:
        chosen = Choices(**choices)  # type: ignore[arg-type]
    except TypeError as error:
        known = ", ".join(Choices.__dataclass_fields__)
        raise InputError(f"There is no such choice: choose some of {known}.") from error
    if start is not None and start.config != config:
        raise InputError("The network to start from has another shape.")
    with one_thread(), torch.inference_mode(False), torch.enable_grad():
        model = random_network(config, chosen.seed)
        if start is not None:
            model.load_state_dict(start.state_dict())
        return _train(model, chosen, on_step, on_batch)


def random_network(config: ViTConfig, seed: int) -> ViT:
    """A network with random weights, which depend on the seed alone, whatever other threads do."""
    with _seeding, torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return ViT(config)


def _train(
    model: ViT, chosen: Choices, on_step: Callable[[ViT, History], object] | None, on_batch: OnBatch
) -> tuple[ViT, History]:
    generator, history = torch.Generator().manual_seed(chosen.seed), History(chosen.seed)
    digits, labels = quick_digits()
    train, classes = digits[: chosen.num_digits], labels[: chosen.num_digits]
    if chosen.shuffle_labels:
        classes = classes[torch.randperm(len(classes), generator=generator)]
    matrices = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() <= 1]
    groups = [{"params": matrices, "weight_decay": WEIGHT_DECAY}, {"params": others, "weight_decay": 0.0}]
    optimiser = torch.optim.AdamW(groups, lr=chosen.learning_rate)
    started, history.steps = time.perf_counter(), chosen.steps or 0

    def loss_of(digits: Tensor, classes: Tensor) -> tuple[Tensor, float]:
        loss = F.cross_entropy(model(digits), classes)
        return loss, loss.item()

    def share(step: int) -> float:
        return min((step + 1) / WARM_UP, 1 - step / history.steps if history.steps else 1.0)

    def check() -> None:
        history.accuracy.append((len(history.loss), accuracy(model, on_batch)))

    batches = _batches(train, classes, generator, history)
    for step, loss in enumerate(updates(model, optimiser, batches, loss_of, share), 1):
        history.loss.append(loss)
        history.seconds = time.perf_counter() - started
        if not math.isfinite(loss):
            raise InputError("The loss is no longer a number: choose a lower learning rate.")
        if not history.steps and step == WARM_UP:
            check()
            of_checks = (NUM_CHECKS + 1) * (time.perf_counter() - started - history.seconds)
            left = 0.95 * chosen.seconds - of_checks  # the first steps tell only about how long the others take
            history.steps = max(WARM_UP, round(WARM_UP * left / history.seconds))
        elif history.steps and step * NUM_CHECKS % history.steps < NUM_CHECKS:
            check()
        if on_step is not None and on_step(model, history):
            break
    if not history.accuracy or history.accuracy[-1][0] != len(history.loss):
        check()
    model.zero_grad()
    return model.eval().requires_grad_(False), history


def _batches(
    digits: Tensor, classes: Tensor, generator: torch.Generator, history: History
) -> Iterator[tuple[Tensor, Tensor]]:
    """Batches of shifted digits and their classes, as many as the run has steps; each digit once in a pass."""
    order = torch.empty(0, dtype=torch.long)
    while not history.steps or len(history.loss) < history.steps:
        if len(order) < min(BATCH_SIZE, len(digits)):
            order = torch.randperm(len(digits), generator=generator)
        batch, order = order[:BATCH_SIZE], order[BATCH_SIZE:]
        yield shift(digits[batch], generator), classes[batch]


def accuracy(model: ViT, on_batch: OnBatch = None) -> float:
    """The share of the ``NUM_TEST`` digits that a network gets right, in [0, 1]. ``on_batch`` as in ``predictions``."""
    return float((predictions(model, on_batch) == quick_digits()[1][NUM_TRAIN:]).float().mean())


@torch.no_grad()
def predictions(model: ViT, on_batch: OnBatch = None) -> Tensor:
    """The predicted classes of the test digits, int64 ``[NUM_TEST]``; what ``on_batch`` raises ends it."""
    model.eval()
    found = []
    for part in quick_digits()[0][NUM_TRAIN:].split(BATCH_SIZE):
        found.append(model(part).argmax(1))
        if on_batch is not None:
            on_batch()
    return torch.cat(found)


def held_out_digit(number: int) -> NDArray[np.uint8]:
    """One of the ``NUM_TEST`` digits, ``[28, 28]``, white on black."""
    digit = quick_digits()[0][NUM_TRAIN + number, 0]
    return (255 * (digit * MNIST_STD + MNIST_MEAN)).round().byte().numpy()


@cache
def quick_digits() -> tuple[Tensor, Tensor]:
    """The digits of ``DIGITS_FILE``, float32 ``[6000, 1, 28, 28]``, normalised, and their classes, int64 ``[6000]``."""
    try:
        with np.load(DIGITS_FILE, allow_pickle=False) as file:
            images, labels = torch.from_numpy(file["images"]), torch.from_numpy(file["labels"])
    except (OSError, ValueError, KeyError) as error:
        raise CheckpointError(f"{DIGITS_FILE.name} is missing or damaged: install the package again.") from error
    return ((images.float() / 255 - MNIST_MEAN) / MNIST_STD)[:, None], labels.long()


def shift(digits: Tensor, generator: torch.Generator) -> Tensor:
    """Moves each of digits ``[B, 1, 28, 28]`` by up to ``MAX_SHIFT`` pixels."""
    count, side = len(digits), digits.shape[-1]
    padded = F.pad(digits, (MAX_SHIFT,) * 4, value=-MNIST_MEAN / MNIST_STD)
    top, left = torch.randint(0, 2 * MAX_SHIFT + 1, (2, count, 1), generator=generator)
    rows, cols = top + torch.arange(side), left + torch.arange(side)  # [B, 28]
    return padded[torch.arange(count)[:, None, None], 0, rows[:, :, None], cols[:, None]][:, None]


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread for each product, in this thread: small networks get slower by more, on a busy machine many times."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
