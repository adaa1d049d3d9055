"""Networks that visitors train or teach, kept in memory for an hour under unguessable names."""

from __future__ import annotations

import hashlib
import re
import secrets
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace
from threading import Lock
from typing import Any, Generic, NamedTuple, TypeVar

from vit_demo.errors import PresetError
from vit_demo.model import ViT, ViTConfig
from vit_demo.resources import memory_limit
from vit_demo.weights.digit_folders import digits_preset
from vit_demo.weights.preset import Preset

NAME = re.compile(r"(yours|taught)-[\w-]{22}", re.ASCII)
GONE = "This network is gone, because the server keeps it for an hour: train it again with the same seed and steps."

GONE_TAUGHT = "These classes are gone, because the server keeps them for an hour: reload the page, or open their link."

KEPT_SECONDS = 3600.0
BYTES_OF_A_BLOCK, ENTRY_BYTES = 30_000, 2700  # memory of a block beside its weights, of an entry beside its head

V = TypeVar("V")


class Shares(Generic[V]):
    """Values of several owners, each for ``KEPT_SECONDS``; an owner's oldest make room for that owner's next.

    A value stays with whom it was first kept for: others, who open a link to it, only make it the newest. If all shares
    together are too many, the oldest of the owner who holds most goes. Safe to call from several threads.

    Args:
        max_bytes: Limit of all values together.
        bytes_of_one: Limit of one owner's.
    """

    def __init__(self, max_bytes: int, bytes_of_one: int) -> None:
        self.max_bytes, self.bytes_of_one = max_bytes, bytes_of_one
        self._kept: dict[str, tuple[V, str, int, float]] = {}  # value, owner, bytes, and when; the oldest first
        self._names = defaultdict[str, dict[str, None]](dict)  # of each owner; the oldest first
        self._held, self._total = Counter[str](), 0
        self._lock = Lock()

    def put(self, name: str, value: V, owner: str, nbytes: int) -> None:
        """Keeps a value, as its owner's newest."""
        with self._lock:
            self._forget_old()
            owner = self._drop(name) if name in self._kept else owner
            self._kept[name] = value, owner, nbytes, time.monotonic()
            self._names[owner][name] = None
            self._held[owner] += nbytes
            self._total += nbytes
            while (is_greedy := self._held[owner] > self.bytes_of_one) or self._total > self.max_bytes:
                self._drop(next(iter(self._names[owner if is_greedy else self._held.most_common(1)[0][0]])))

    def get(self, name: str) -> V | None:
        """The value of a name; None if it is gone."""
        with self._lock:
            self._forget_old()
            return self._kept[name][0] if name in self._kept else None

    def _forget_old(self) -> None:
        until = time.monotonic() - KEPT_SECONDS
        while self._kept and self._kept[name := next(iter(self._kept))][3] < until:
            self._drop(name)

    def _drop(self, name: str) -> str:
        """Forgets a value; returns whose it was."""
        _, owner, nbytes, _ = self._kept.pop(name)
        del self._names[owner][name]
        self._held[owner] -= nbytes
        self._total -= nbytes
        if not self._names[owner]:
            del self._names[owner], self._held[owner]
        return owner


class Trained(NamedTuple):
    """A network that a person trained, or the same before.

    Attributes:
        make: Gives the network: one in memory, or one of random weights, which follows from its seed.
        config: Its shape.
        accuracy: The share of test digits that it gets right, in [0, 1].
        is_before: Whether it is untrained.
    """

    make: Callable[[], ViT]
    config: ViTConfig
    accuracy: float
    is_before: bool

    @property
    def model(self) -> ViT:
        """The network."""
        return self.make()


def shares_of(memory: int) -> tuple[int, int]:
    """Bytes that all networks may take, and those of one address: of 2 GB, 38 of the usual size, enough for a class."""
    most = min(512 << 20, memory // 16)
    return most, most // 5


networks = Shares[Trained | Preset](*shares_of(memory_limit()))  # those of this process, by name


def keep(model: ViT, accuracy: float, owner: str = "") -> str:
    """Keeps a trained network in memory; the name under which it is found."""
    nbytes = 4 * model.config.num_parameters + BYTES_OF_A_BLOCK * (model.config.depth + 1)
    return _keep(Trained(lambda: model, model.config, accuracy, False), owner, nbytes)


def keep_before(make: Callable[[], ViT], config: ViTConfig, accuracy: float, owner: str = "") -> str:
    """Keeps how a network was before its training, without its weights; the name under which it is found."""
    return _keep(Trained(make, config, accuracy, True), owner, ENTRY_BYTES)


def _keep(one: Trained, owner: str, nbytes: int) -> str:
    networks.put(name := f"yours-{secrets.token_urlsafe(16)}", one, owner, nbytes)
    return name


def keep_taught(preset: Preset, owner: str = "") -> Preset:
    """Keeps a network with another head in memory, without its other weights; with the name under which it is found."""
    assert preset.base is not None, "only of one that was taught"
    content = repr((preset.base.name, preset.default_patch_size, preset.labels, preset.head)).encode()
    name = f"taught-{hashlib.sha256(content).hexdigest()[:22]}"
    nbytes = ENTRY_BYTES + len(preset.head) + 2 * sum(map(sys.getsizeof, preset.labels))  # the title holds them again
    networks.put(name, kept := replace(preset, name=name), owner, nbytes)
    return kept


def is_trained_name(name: Any) -> bool:
    """Whether a name has the form of those that ``keep`` gives."""
    return isinstance(name, str) and NAME.fullmatch(name) is not None


def trained_network(name: str) -> Trained:
    """A network that is in memory; ``PresetError`` if it is gone."""
    found = networks.get(name)
    if not isinstance(found, Trained):
        raise PresetError(GONE)
    return found


def trained_preset(name: str) -> Preset:
    """The preset of a network in memory; ``PresetError`` if it is gone."""
    if name.startswith("taught"):
        if not isinstance(taught := networks.get(name), Preset):
            raise PresetError(GONE_TAUGHT)
        return taught
    found = trained_network(name)
    title = "Yours before training" if found.is_before else "Yours"
    return digits_preset(name, f"{title} ({100 * found.accuracy:.0f} %)", found.config, "trained")
