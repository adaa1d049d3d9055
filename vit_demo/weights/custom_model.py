"""The user's own model, from a repository of the Hub or a folder, as a preset: ``config.json`` read, never run.

Both libraries' files are understood: timm's ``config.json``, which names an architecture and its ``pretrained_cfg``,
and transformers' ``config.json`` with a ``preprocessor_config.json`` beside it.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any

import cachetools

from vit_demo.errors import CheckpointError, PresetError
from vit_demo.weights.convert import convert
from vit_demo.weights.hf_config import Description, describe_timm, describe_transformers
from vit_demo.weights.hf_weights import WEIGHTS, read_shapes
from vit_demo.weights.hub import MissingFileError, Progress, commit_of, fetch
from vit_demo.weights.preset import Preset
from vit_demo.weights.hub_presets import offered_sizes


def is_own(name: str) -> bool:
    """Whether a name stands for a folder that is there, or may stand for a repository of the Hub."""
    return bool(name.strip()) and ("/" in name or Path(name).is_dir())


def read_own(name: str, progress: Progress | None = None) -> Preset:
    """A preset made of somebody's own model; its weights, too, are fetched, for their shapes are read.

    Args:
        name: ``org/name``, ``org/name@revision``, or a folder.
        progress: As in ``hub.fetch``.

    Raises:
        PresetError: If the model is of a kind that cannot be used here.
        CheckpointError: If it cannot be fetched, or its files cannot be used; the sentence says why.
    """
    if Path(name).is_dir():
        return _read(name, "folder", name, "", Path(name))
    return _read_repository(name, progress)


@cachetools.cached(cachetools.LRUCache(64), key=lambda name, progress: name, lock=Lock())
def _read_repository(name: str, progress: Progress | None) -> Preset:
    """Asked for again and again while the preset is in use, so what was read is remembered."""
    repo, _, revision = name.partition("@")
    config = fetch(repo, "config.json", revision or "main", progress)
    commit = commit_of(config)  # so that all files are of one commit, whatever happens to the branch
    with suppress(MissingFileError):  # timm has none
        fetch(repo, "preprocessor_config.json", commit, progress)
    try:
        fetch(repo, WEIGHTS, commit, progress)
    except MissingFileError as error:
        raise CheckpointError(_no_weights(name)) from error
    return _read(name, "hub", repo, commit, config.parent)


def _read(name: str, source: str, repo: str, revision: str, folder: Path) -> Preset:
    if not (folder / WEIGHTS).is_file():
        raise CheckpointError(_no_weights(name))
    described = _describe(name, folder)
    try:
        config, _ = convert(read_shapes(folder / WEIGHTS), described.untold)
    except CheckpointError as error:
        raise CheckpointError(f"{name}: {error}") from error
    if config.in_channels != 3:
        raise PresetError(f"{name} takes images of {config.in_channels} channels: choose a model for RGB photos.")
    return Preset(
        name=name,
        title=repo.rstrip("/").rsplit("/", 1)[-1],
        task="photos",
        config=config,
        labels=_unique(described.labels, config.num_classes),
        patch_sizes=offered_sizes(config.image_size, config.patch_size),
        default_patch_size=config.patch_size,
        flexible=False,
        source=source,
        mean=described.mean,
        std=described.std,
        crop_fraction=described.crop_fraction,
        interpolation=described.interpolation,
        repo=repo,
        revision=revision,
        note=f"Made for patches of {config.patch_size} px; other sizes are resampled and lose accuracy. "
        f"{described.note}".strip(),
    )


def _no_weights(name: str) -> str:
    return (
        f"{name} has no {WEIGHTS}: save it as safetensors in one file; pickled weights (.bin, .pth) are never opened, "
        "because that can run somebody else's program."
    )


def _describe(name: str, folder: Path) -> Description:
    config = _read_json(name, folder / "config.json")
    try:
        if "architecture" in config:
            return describe_timm(config)
        preprocessor = folder / "preprocessor_config.json"
        return describe_transformers(config, _read_json(name, preprocessor) if preprocessor.is_file() else None)
    except PresetError as error:
        raise PresetError(f"{name}: {error}") from error
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise PresetError(f"{name}: its config.json cannot be understood ({error!r}).") from error


def _read_json(name: str, path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise CheckpointError(f"{name} has no {path.name}, so what its weights are is not known.") from error
    except ValueError as error:
        raise CheckpointError(f"{path.name} of {name} is not JSON: fetch or write it again.") from error
    if not isinstance(content, dict):
        raise CheckpointError(f"{path.name} of {name} does not hold an object: fetch or write it again.")
    return content


def _unique(labels: tuple[str, ...], num_classes: int) -> tuple[str, ...]:
    """A name for each output, no two alike, because a class is asked for by its name."""
    if len(labels) != num_classes:
        labels = tuple(f"class {i}" for i in range(num_classes))
    return tuple(label if labels.count(label) == 1 else f"{label} ({i})" for i, label in enumerate(labels))
