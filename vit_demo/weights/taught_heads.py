"""Networks with a head that was taught: as presets, as files, and as texts short enough for a link."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load, save

from vit_demo.checks import composed, writing
from vit_demo.defaults import MAX_LABEL, MAX_TAUGHT_CLASSES
from vit_demo.errors import CheckpointError, InputError, LabelError, PresetError
from vit_demo.resources import resource_folder
from vit_demo.sentences import sentence
from vit_demo.trace import Output, TracedViT
from vit_demo.trace.other_head import OTHER_WIDTH, with_head
from vit_demo.weights.preset import Preset
from vit_demo.weights.safetensors_io import read_metadata
from vit_demo.words.classifier import with_words
from vit_demo.words.texts import is_word

if TYPE_CHECKING:
    from torch import nn

FORMAT = "vit_demo taught 1"
ENDING = ".safetensors"
MAX_CLASSES = 50  # classes in a file
MAX_FILE_BYTES = 1 << 22
MAX_LINK = 8192  # characters of a taught network in a link
DAMAGED = "{0} is not a file that `vit-demo teach` wrote: teach the network again."
BAD_LINK = "The taught classes of this link are damaged: ask for the link again."

DTYPES = (torch.float32, torch.float16)  # types of the head in a file, and in a link
Head = NDArray[np.float32]  # weights and, in the last column, biases of a linear head, ``[K, D + 1]``


@dataclass(frozen=True, eq=False)
class Taught:
    """A network whose head was computed from examples: pass it as ``model`` to ``explore`` or ``Explainer``.

    Attributes:
        labels: The names of the classes.
        accuracy: The share of the examples that a head gets right which has not seen them, in [0, 1]; by guessing it is
            ``chance``.
        confusion: int64 ``[K, K]``: examples by their class and by the class that such a head predicts.
        shrinkage: That of the ridge regression, chosen by leaving out one example at a time.
        temperature: By which its outputs are divided before a softmax, chosen alike.
        head: float32 ``[K, D + 1]``: the weights, divided by the temperature, and in the last column the biases.
        preset: The network; of one in memory, what is known of it.
        patch_size: That of the examples, in pixels.
        module: A network in memory with its new head; None for a named one.
        transform: From a picture to its input, as it was given.
        output: Where its logits are.
    """

    labels: tuple[str, ...]
    accuracy: float
    confusion: NDArray[np.int64]
    shrinkage: float
    temperature: float
    head: Head = field(repr=False)
    preset: Preset = field(repr=False)
    patch_size: int
    module: nn.Module | None = field(default=None, repr=False)
    transform: Any = field(default=None, repr=False)
    output: Output | None = field(default=None, repr=False)

    @property
    def chance(self) -> float:
        """The accuracy of guesses that name each class as often as the answers did; see ``confusion``."""
        of_class, named = self.confusion.sum(1), self.confusion.sum(0)
        return float(of_class @ named / self.confusion.sum() ** 2)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes names and head into a file that ``explore`` takes as ``model``; the network itself is not in it.

        Args:
            path: Ends in ``.safetensors``; it is overwritten.

        Raises:
            InputError: If the network is in memory, whose weights nothing names, or the file cannot be written.
        """
        if self.preset.base is None:
            raise InputError("This network has no name that a file could hold: save its head and labels yourself.")
        if not os.fspath(path).endswith(ENDING):
            raise InputError(f"The name of the file must end in {ENDING}.")
        with writing(path):
            Path(path).write_bytes(to_bytes(self.preset))


def check_labels(labels: Iterable[Any], most: int = MAX_CLASSES, least: int = 2) -> tuple[str, ...]:
    """The names of classes, without the space around them; ``LabelError`` unless they can be told apart and shown."""
    names = tuple(labels)
    if not least <= len(names) <= most:
        raise LabelError("Teach 2 to {0} classes, not {1}.", most, len(names))
    if not all(is_word(name, MAX_LABEL) for name in names):
        raise LabelError("The name of a class must be one line of 1 to {0} characters.", MAX_LABEL)
    stripped = tuple(composed(name.strip()) for name in names)
    for number, name in enumerate(stripped):
        if name in stripped[:number]:
            raise LabelError("Two classes are called “{0}”: give one another name.", name)
    return stripped


def taught_preset(
    base: Preset, patch_size: int, labels: tuple[str, ...], head: Head, name: str = "taught", title: str = ""
) -> Preset:
    """The preset of a network, ``base``, with another ``head`` for the classes ``labels``; see ``Head``.

    The patch size is that of the examples, and becomes the default; ``title`` is the labels, if it is empty.
    """
    base = base.own
    sizes = base.patch_sizes if base.flexible or not base.is_bundled else (patch_size,)
    return replace(
        base,
        name=name,
        title=title or ", ".join(labels),
        labels=labels,
        config=replace(base.config, num_classes=len(labels)),
        patch_sizes=sizes,
        default_patch_size=base.check_patch_size(patch_size),
        scores="softmax",
        takes_words=False,
        confidence_threshold=0.5,
        max_entropy=float("inf"),
        note="",
        base=base,
        head=head.tobytes(),
    )


@torch.inference_mode(False)
def with_classes(network: TracedViT, preset: Preset) -> TracedViT:
    """The network of a preset with the classes that this has: typed words, a head that was taught, or its own."""
    if not preset.head:
        return with_words(network, preset.labels, preset.template)
    head = torch.frombuffer(bytearray(preset.head), dtype=torch.float32).view(len(preset.labels), -1)
    return with_head(network, head[:, :-1], head[:, -1])


def commit_of(base: Preset, patch_size: int) -> str:
    """What tells the weights of a preset from others of that name: their commit, or the digest of bundled ones."""
    if not base.is_bundled:
        return base.revision
    path = resource_folder("checkpoints") / f"{base.checkpoint_name(patch_size)}{ENDING}"
    return read_metadata(path).get("digest", "")


def to_bytes(preset: Preset, dtype: torch.dtype = torch.float32) -> bytes:
    """A safetensors file with the head of a preset that was taught, and in its header whose it is."""
    base, size = preset.own, preset.default_patch_size
    about = {"format": FORMAT, "model": base.name, "commit": commit_of(base, size), "patch_size": str(size)}
    head = torch.frombuffer(bytearray(preset.head), dtype=torch.float32).view(len(preset.labels), -1)
    return save({"head": head.to(dtype)}, about | {"labels": json.dumps(preset.labels, ensure_ascii=False)})


class Parsed(NamedTuple):
    """The content of a file that ``to_bytes`` made."""

    model: str
    patch_size: int
    commit: str
    labels: tuple[str, ...]
    head: Head

    @classmethod
    def of(cls, data: bytes, message: str, most: int = MAX_CLASSES) -> Parsed:
        """Checks the bytes of anybody; ``CheckpointError`` with a message if they are not those of ``to_bytes``."""
        try:
            about = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["__metadata__"]
            head, labels = load(data)["head"], check_labels(json.loads(about["labels"]), most)
            is_whole = head.ndim == 2 and len(head) == len(labels) and head.shape[1] > 1
            if about["format"] != FORMAT or head.dtype not in DTYPES or not is_whole or not head.isfinite().all():
                raise ValueError
            return cls(about["model"], int(about["patch_size"]), about["commit"], labels, head.float().numpy())
        except (KeyError, TypeError, ValueError, RecursionError, SafetensorError) as error:
            raise CheckpointError(message) from error

    def preset(self, base: Preset, name: str = "taught") -> Preset:
        """The preset of the network with this head; ``PresetError`` if it does not fit its weights."""
        if commit_of(base, base.check_patch_size(self.patch_size)) != self.commit:
            raise CheckpointError("This was taught with other weights of {0}: teach the network again.", base.name)
        if not base.library and self.head.shape[1] != base.config.num_features + 1:
            raise PresetError(OTHER_WIDTH)
        return taught_preset(base, self.patch_size, self.labels, self.head, name)


def file_preset(name: str, find: Callable[[str], Preset]) -> Preset:
    """The preset of a file that ``Taught.save`` wrote; ``find`` is ``find_preset``.

    ``CheckpointError`` if it is none, is damaged, or was taught with other weights.
    """
    path, damaged = Path(name), sentence(DAMAGED, Path(name).name)
    if path.stat().st_size > MAX_FILE_BYTES:
        raise CheckpointError(damaged)
    parsed = Parsed.of(path.read_bytes(), damaged)
    if parsed.model.endswith(ENDING):
        raise CheckpointError(damaged)
    return parsed.preset(find(parsed.model), name)


def to_link(preset: Preset) -> str:
    """A taught network, in half precision, as text for a link; empty if that would be too long."""
    text = base64.urlsafe_b64encode(to_bytes(preset, torch.float16)).decode().rstrip("=")
    return text if len(text) <= MAX_LINK else ""


def from_link(text: Any) -> Parsed:
    """What the text of a link holds, by anybody; ``CheckpointError`` if it is damaged."""
    if not isinstance(text, str) or len(text) > MAX_LINK:
        raise CheckpointError(BAD_LINK)
    try:
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError as error:
        raise CheckpointError(BAD_LINK) from error
    return Parsed.of(data, BAD_LINK, MAX_TAUGHT_CLASSES)
