"""The user's own model, from a repository of the Hub or a folder, as a preset: ``config.json`` read, never run.

Both libraries' files are understood: timm's ``config.json``, which names an architecture and its ``pretrained_cfg``,
and transformers' ``config.json`` with a ``preprocessor_config.json`` beside it.
"""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from threading import Lock

import cachetools

from vit_demo.errors import CheckpointError, PresetError
from vit_demo.weights import limits, visitor_cache
from vit_demo.weights.convert import convert
from vit_demo.weights.hf_config import Description, describe_timm, describe_transformers
from vit_demo.weights.hf_weights import WEIGHTS
from vit_demo.weights.hub import REPOSITORY, REVISION, MissingFileError, Progress, commit_of, fetch
from vit_demo.weights.hub_presets import offered_sizes
from vit_demo.weights.json_fields import read_object
from vit_demo.weights.preset import Preset
from vit_demo.weights.tensors import read_tensors
from vit_demo.weights.text import clean

CONFIG, PREPROCESSOR = "config.json", "preprocessor_config.json"


def is_custom(name: str, *, trusted: bool) -> bool:
    """Whether a name stands for a folder that is there, or may stand for a repository of the Hub.

    A visitor's name is never looked up as a folder: what folders this computer has is none of their business.
    """
    if trusted:
        return bool(name.strip()) and ("/" in name or _is_folder(name))
    repo, at, revision = name.partition("@")
    return bool(REPOSITORY.fullmatch(repo) and (not at or REVISION.fullmatch(revision)))


def read_custom(name: str, progress: Progress | None = None, *, trusted: bool = True) -> Preset:
    """A preset made of somebody's own model; its weights, too, are fetched, for their shapes are read.

    Args:
        name: ``org/name``, ``org/name@revision``, or, if trusted, a folder.
        progress: As in ``hub.fetch``.
        trusted: As in ``hub.fetch``.

    Raises:
        PresetError: If the model is of a kind that cannot be used here.
        CheckpointError: If it cannot be fetched, or its files cannot be used; the sentence says why.
    """
    if trusted and _is_folder(name):
        return _read(name, "folder", name, "", Path(name), trusted=True)
    return _read_repository(name, progress, trusted)


def _is_folder(name: str) -> bool:
    try:
        return Path(name).is_dir()
    except (OSError, ValueError):  # too long, or not a path at all
        return False


@cachetools.cached(cachetools.LRUCache(64), key=lambda name, progress, trusted: (name, trusted), lock=Lock())
def _read_repository(name: str, progress: Progress | None, trusted: bool) -> Preset:
    """Asked for again and again while the preset is in use, so what was read is remembered."""
    repo, _, revision = name.partition("@")
    most = limits.MAX_JSON_BYTES
    config = fetch(repo, CONFIG, revision or "main", progress, trusted=trusted, max_bytes=most)
    commit = commit_of(config)  # so that all files are of one commit, whatever happens to the branch
    with nullcontext() if trusted else visitor_cache.in_use(repo, commit):
        with suppress(MissingFileError):  # timm has none
            fetch(repo, PREPROCESSOR, commit, progress, trusted=trusted, max_bytes=most)
        _describe(name, config.parent)  # refuses what it can before the large file is fetched
        try:
            fetch(repo, WEIGHTS, commit, progress, trusted=trusted)
        except MissingFileError as error:
            raise CheckpointError(_no_weights(name)) from error
        return _read(name, "hub", repo, commit, config.parent, trusted=trusted)


def _read(name: str, source: str, repo: str, revision: str, folder: Path, *, trusted: bool) -> Preset:
    if not (folder / WEIGHTS).is_file():
        raise CheckpointError(_no_weights(name))
    described = _describe(name, folder)
    try:
        config, _ = convert(read_tensors(folder / WEIGHTS, shapes_only=True), described.untold)
        if config.in_channels != 3:
            raise PresetError(f"it takes images of {config.in_channels} channels: choose a model for RGB photos.")
        preset = Preset(
            name=name,
            title=clean(repo.rstrip("/").rsplit("/", 1)[-1], limits.MAX_LABEL),
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
            trusted=trusted,
            note=f"Made for patches of {config.patch_size} px; other sizes are resampled and lose accuracy. "
            f"{described.note}".strip(),
        )
        return preset if trusted else _for_visitors(preset)
    except CheckpointError as error:
        raise CheckpointError(f"{name}: {error}") from error
    except PresetError as error:
        raise PresetError(f"{name}: {error}") from error


def _for_visitors(preset: Preset) -> Preset:
    """The same preset with the patch sizes that a public page can afford.

    Raises:
        PresetError: If it cannot afford the network at all.
    """
    limits.check_for_visitors(preset.config, preset.num_parameters)
    sizes = (p for p in preset.patch_sizes if p <= limits.MAX_VISITOR_PATCH and limits.is_affordable(preset.config, p))
    return replace(preset, patch_sizes=tuple(sizes))


def _no_weights(name: str) -> str:
    return (
        f"{name} has no {WEIGHTS}: save it as safetensors in one file; pickled weights (.bin, .pth) are never opened, "
        "because that can run somebody else's program."
    )


def _describe(name: str, folder: Path) -> Description:
    config = read_object(folder / CONFIG, name)
    try:
        if "architecture" in config:
            return describe_timm(config)
        preprocessor = folder / PREPROCESSOR
        return describe_transformers(config, read_object(preprocessor, name) if preprocessor.is_file() else None)
    except PresetError as error:
        raise PresetError(f"{name}: {error}") from error


def _unique(labels: tuple[str, ...], num_classes: int) -> tuple[str, ...]:
    """A clean name for each output, no two alike, because a class is asked for by its name."""
    named = [clean(label, limits.MAX_LABEL) for label in labels] if len(labels) == num_classes else [""] * num_classes
    named = [label or f"class {i}" for i, label in enumerate(named)]
    counts = Counter(named)
    taken = set(named)
    for i, label in enumerate(named):
        if counts[label] > 1:
            while label in taken:
                label = f"{label} ({i})"
            taken.add(label)
            named[i] = label
    return tuple(named)
