"""Networks of digits that people train themselves: in folders, and in memory for an hour under unguessable names."""

from __future__ import annotations

import json
import re
import secrets
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from safetensors.torch import save_file

from vit_demo.checks import require
from vit_demo.errors import CheckpointError, InputError, PresetError
from vit_demo.model import ViT, ViTConfig
from vit_demo.weights.limits import check_network
from vit_demo.weights.preset import Preset
from vit_demo.weights.presets import PRESETS
from vit_demo.weights.safetensors_io import read_metadata

if TYPE_CHECKING:
    from cachetools import TTLCache

FILE = "model.safetensors"
FORMAT = "vit_demo digits"
NAME = re.compile(r"yours-[\w-]{22}", re.ASCII)
GONE = "This network is gone, because the server keeps it for an hour: train it again with the same seed and steps."

KEPT_BYTES, KEPT_SECONDS = 64 << 20, 3600.0
"""What all networks in memory may take together, and for how long they stay."""
BYTES_OF_ONE = KEPT_BYTES // 4
"""What those of one visitor may take, so that nobody drives out everyone else's; the visitor's oldest go first."""


class Trained(NamedTuple):
    """A network, the share of test digits that it gets right, in [0, 1], its owner, and whether it is untrained."""

    model: ViT
    accuracy: float
    owner: str
    is_before: bool

    @property
    def num_bytes(self) -> int:
        """Of its weights."""
        return 4 * self.model.config.num_parameters


_lock = Lock()


@cache
def _networks() -> TTLCache[str, Trained]:
    require("cachetools", "A network in memory")
    from cachetools import TTLCache  # here, because only the app installs it

    return TTLCache(KEPT_BYTES, KEPT_SECONDS, getsizeof=lambda one: one.num_bytes)


def keep(model: ViT, accuracy: float, owner: str = "", *, is_before: bool = False) -> str:
    """Keeps a network of a visitor in memory, trained or as it was before; the name under which it is found."""
    name, new = f"yours-{secrets.token_urlsafe(16)}", Trained(model, accuracy, owner, is_before)
    with _lock:
        networks = _networks()
        kept = [
            (old, networks.get(old)) for old in list(networks)
        ]  # the oldest first; None for one that has just expired
        theirs = [(old, one.num_bytes) for old, one in kept if one is not None and one.owner == owner]
        while theirs and sum(size for _, size in theirs) + new.num_bytes > BYTES_OF_ONE:
            networks.pop(theirs.pop(0)[0], None)
        networks[name] = new
    return name


def is_trained_name(name: Any) -> bool:
    """Whether a name has the form of those that ``keep`` gives."""
    return isinstance(name, str) and NAME.fullmatch(name) is not None


def trained_network(name: str) -> Trained:
    """A network that is in memory; ``PresetError`` if it is gone."""
    with _lock:
        found = _networks().get(name)
    if found is None:
        raise PresetError(GONE)
    return found


def trained_preset(name: str) -> Preset:
    """The preset of a network in memory; ``PresetError`` if it is gone."""
    model, accuracy, _, is_before = trained_network(name)
    title = "Yours before training" if is_before else "Yours"
    return digits_preset(name, f"{title} ({100 * accuracy:.0f} %)", model.config, "trained")


def digits_preset(name: str, title: str, config: ViTConfig, source: str, **fields: Any) -> Preset:
    """A preset for digits, with one patch size."""
    like = replace(PRESETS["digits-notebook"], name=name, title=title, config=config, source=source, note="", **fields)
    return replace(like, patch_sizes=(config.patch_size,), default_patch_size=config.patch_size)


def folder_preset(name: str, folder: Path, revision: str) -> Preset | None:
    """The preset of a folder that ``save_digits`` wrote; None for any other.

    Raises:
        CheckpointError: If its file is damaged.
    """
    path = folder / FILE
    header = read_metadata(path) if path.is_file() else {}
    if header.get("format") != FORMAT:
        return None
    try:
        config = ViTConfig(**json.loads(header["config"]))
        check_network(config)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise CheckpointError(f"The header of {path.name} holds no valid config: train the network again.") from error
    return digits_preset(name, folder.name, config, "folder", repo=str(folder), revision=revision)


def save_digits(folder: Path, model: ViT, history: Any) -> Path:
    """Writes a network as a folder that ``vit_demo.explore`` takes: one file, with config and history in its header.

    Args:
        folder: Is made if it does not exist.
        model: The network, of 28 x 28 grey pixels and ten classes.
        history: A dataclass of JSON values.

    Returns:
        The path of the file.

    Raises:
        InputError: If the file cannot be written.
    """
    path = folder / FILE
    header = {"format": FORMAT, "config": json.dumps(model.config.to_dict()), "history": json.dumps(asdict(history))}
    tensors = {
        name: value.detach().clone(memory_format=torch.contiguous_format) for name, value in model.state_dict().items()
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        save_file(tensors, path, header)
    except OSError as error:
        raise InputError(f"{path} cannot be written ({error.strerror}): choose another folder.") from error
    return path
