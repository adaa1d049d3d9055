"""Custom models: a preset for any supported repository of the Hub or folder; files are parsed, no code of theirs runs.

Two formats are read: timm's ``config.json`` with an architecture and its ``pretrained_cfg``, and transformers'
``config.json`` with a ``preprocessor_config.json`` beside it.
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
from vit_demo.weights.hf_config import ParsedConfig, parse_timm_config, parse_transformers_config
from vit_demo.weights.hf_weights import WEIGHTS_FILE
from vit_demo.weights.hub import REPOSITORY, REVISION, MissingFileError, Progress, commit_of, fetch
from vit_demo.weights.hub_presets import offered_patch_sizes
from vit_demo.weights.json_fields import read_json_object
from vit_demo.weights.preset import Preset
from vit_demo.weights.safetensors_io import read_tensors
from vit_demo.weights.untrusted_text import sanitize

CONFIG_FILE, PREPROCESSOR_FILE = "config.json", "preprocessor_config.json"


def is_custom_name(name: str, *, trusted: bool) -> bool:
    """Whether a name is that of an existing folder, or can be that of a repository of the Hub.

    An untrusted name is never looked up in the file system, so that visitors cannot find out which folders exist.
    """
    if trusted:
        return bool(name.strip()) and ("/" in name or _is_folder(name))
    repo, at, revision = name.partition("@")
    return bool(REPOSITORY.fullmatch(repo) and (not at or REVISION.fullmatch(revision)))


def custom_preset(name: str, progress: Progress | None = None, *, trusted: bool = True) -> Preset:
    """The preset of a custom model. Its weights are downloaded too, because the config is inferred from their shapes.

    Args:
        name: ``org/name``, ``org/name@revision``, or, if trusted, a folder.
        progress: As in ``hub.fetch``.
        trusted: As in ``hub.fetch``.

    Raises:
        PresetError: If the model is not supported.
        CheckpointError: If it cannot be downloaded, or its files cannot be used; the message gives the reason.
    """
    if trusted and _is_folder(name):
        folder = Path(name).resolve()
        return _read(name, "folder", str(folder), _stamp(folder), folder, trusted=True)
    return _read_repository(name, progress, trusted)


def _stamp(folder: Path) -> str:
    """Changes with the files of a folder, as a commit does: weights that are saved anew are loaded anew."""
    files = [folder / name for name in (CONFIG_FILE, PREPROCESSOR_FILE, WEIGHTS_FILE)]
    states = [file.stat() for file in files if file.is_file()]
    return " ".join(f"{state.st_mtime_ns}-{state.st_ctime_ns}-{state.st_size}" for state in states)


def _is_folder(name: str) -> bool:
    try:
        return Path(name).is_dir()
    except (OSError, ValueError):  # too long, or not a valid path
        return False


@cachetools.cached(cachetools.LRUCache(64), key=lambda name, progress, trusted: (name, trusted), lock=Lock())
def _read_repository(name: str, progress: Progress | None, trusted: bool) -> Preset:
    """Cached, because it is called for every request while the preset is in use."""
    repo, _, revision = name.partition("@")
    most = limits.MAX_JSON_BYTES
    config = fetch(repo, CONFIG_FILE, revision or "main", progress, trusted=trusted, max_bytes=most)
    commit = commit_of(config)  # all files come from one commit, even if the branch moves meanwhile
    with nullcontext() if trusted else visitor_cache.in_use(repo, commit):
        with suppress(MissingFileError):  # timm writes none
            fetch(repo, PREPROCESSOR_FILE, commit, progress, trusted=trusted, max_bytes=most)
        _parse_config(name, config.parent)  # unsupported models are refused before the large file is downloaded
        try:
            fetch(repo, WEIGHTS_FILE, commit, progress, trusted=trusted)
        except MissingFileError as error:
            raise CheckpointError(_no_weights_message(name)) from error
        return _read(name, "hub", repo, commit, config.parent, trusted=trusted)


def _read(name: str, source: str, repo: str, revision: str, folder: Path, *, trusted: bool) -> Preset:
    if not (folder / WEIGHTS_FILE).is_file():
        raise CheckpointError(_no_weights_message(name))
    if (folder / WEIGHTS_FILE).stat().st_size > limits.MAX_WEIGHTS_BYTES:
        most = limits.MAX_WEIGHTS_BYTES // 10**9
        raise CheckpointError(f"{name}: {WEIGHTS_FILE} is larger than {most} GB: choose a smaller model.")
    parsed = _parse_config(name, folder)
    try:
        config, _ = convert(read_tensors(folder / WEIGHTS_FILE, shapes_only=True), parsed.hints)
        if config.in_channels != 3:
            raise PresetError(f"its input has {config.in_channels} channels: choose a model for RGB photos.")
        preset = Preset(
            name=name,
            title=sanitize(repo.rstrip("/").rsplit("/", 1)[-1], limits.MAX_LABEL_LENGTH),
            task="photos",
            config=config,
            labels=_unique_labels(parsed.labels, config.num_classes),
            patch_sizes=offered_patch_sizes(config.image_size, config.patch_size),
            default_patch_size=config.patch_size,
            flexible=False,
            source=source,
            mean=parsed.mean,
            std=parsed.std,
            crop_fraction=parsed.crop_fraction,
            interpolation=parsed.interpolation,
            repo=repo,
            revision=revision,
            trusted=trusted,
            note=f"Trained at {config.patch_size} px; other patch sizes are resampled. {parsed.note}".strip(),
        )
        return preset if trusted else _limited_for_visitors(preset)
    except CheckpointError as error:
        raise CheckpointError(f"{name}: {error}") from error
    except PresetError as error:
        raise PresetError(f"{name}: {error}") from error


def _limited_for_visitors(preset: Preset) -> Preset:
    """The preset with only the patch sizes within the limits of a public page.

    Raises:
        PresetError: If the network exceeds these limits at its own patch size.
    """
    limits.check_for_visitors(preset.config, preset.num_parameters)
    sizes = (p for p in preset.patch_sizes if p <= limits.MAX_VISITOR_PATCH and limits.is_affordable(preset.config, p))
    return replace(preset, patch_sizes=tuple(sizes))


def _no_weights_message(name: str) -> str:
    return (
        f"{name} has no {WEIGHTS_FILE}: save the weights as one safetensors file; pickled weights (.bin, .pth) are "
        "never opened, because opening them can run arbitrary code."
    )


def _parse_config(name: str, folder: Path) -> ParsedConfig:
    config = read_json_object(folder / CONFIG_FILE, name)
    try:
        if "architecture" in config:
            return parse_timm_config(config)
        preprocessor = folder / PREPROCESSOR_FILE
        return parse_transformers_config(
            config, read_json_object(preprocessor, name) if preprocessor.is_file() else None
        )
    except PresetError as error:
        raise PresetError(f"{name}: {error}") from error


def _unique_labels(labels: tuple[str, ...], num_classes: int) -> tuple[str, ...]:
    """A sanitized, unique name for each output, because requests name a class by its label."""
    named = (
        [sanitize(label, limits.MAX_LABEL_LENGTH) for label in labels]
        if len(labels) == num_classes
        else [""] * num_classes
    )
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
