"""Repositories of the Hub and folders as presets: their files are parsed and bounded, and no code of theirs runs.

Two formats are read: timm's ``config.json`` with an architecture and its ``pretrained_cfg``, and transformers'
``config.json`` with a ``preprocessor_config.json`` or a ``processor_config.json`` beside it.
"""

from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any

import torch
from torch import Tensor

from vit_demo.errors import CheckpointError, PresetError
from vit_demo.model import ViT, ViTConfig
from vit_demo.scores import scores_for
from vit_demo.sentences import joined, sentence
from vit_demo.trace import TracedViT, adapt
from vit_demo.trace.running import hooked
from vit_demo.weights import limits
from vit_demo.weights.digit_folders import folder_preset
from vit_demo.weights.hub import visitor_cache
from vit_demo.weights.hub.connection import UnreachableError
from vit_demo.weights.hub.download import REPOSITORY, REVISION, DownloadProgress, MissingFileError, fetch, is_cached
from vit_demo.weights.hub.json_fields import OBJECT, Fields, read_json_object
from vit_demo.weights.hub.network import bounded_outline, build_network, load_tensors, takes_words
from vit_demo.weights.hub.preprocessing import PREPARED, parse_preprocessing
from vit_demo.weights.hub_presets import offered_patch_sizes
from vit_demo.weights.imagenet import IMAGENET_ASSUMED, IMAGENET_LABELS
from vit_demo.weights.preset import Kind, Preset
from vit_demo.weights.safetensors_io import read_tensors, to_finite_float32
from vit_demo.weights.untrusted_text import sanitize
from vit_demo.words.classifier import WordClassifier
from vit_demo.words.texts import DEFAULT_WORDS
from vit_demo.words.tokenizer import tokenizer_of

CONFIG_FILE, WEIGHTS_FILE, TOKENIZER_FILE = "config.json", "model.safetensors", "tokenizer.json"
PROCESSOR_FILES = ("processor_config.json", "preprocessor_config.json")
"""Files of a processor; what newer transformers nest in the first counts where both are there."""

ADAPTER_FILE = "adapter_config.json"
ADAPTER_ALONE = "{0} holds a PEFT adapter alone: merge it into its network by merge_and_unload(), and save that."

MOST_REPOSITORIES = 64

_repositories: dict[tuple[str, bool], Preset] = {}
_lock = Lock()


def is_custom_name(name: str, *, trusted: bool) -> bool:
    """Whether a name is that of an existing folder, or can be that of a repository of the Hub.

    An untrusted name is never looked up in the file system, so that visitors cannot find out which folders exist.
    """
    if trusted:
        return bool(name.strip()) and ("/" in name or _is_folder(name))
    repo, at, revision = name.partition("@")
    return bool(REPOSITORY.fullmatch(repo) and (not at or REVISION.fullmatch(revision)))


def custom_preset(
    name: str, progress: DownloadProgress | None = None, *, trusted: bool = True, proved: bool = True
) -> Preset:
    """The preset of a repository of the Hub or, if trusted, a folder; its weights are loaded once.

    What the head reads cannot be known before. A repository need not be ``proved`` yet. ``PresetError`` if the model is
    not supported, ``CheckpointError`` if it cannot be downloaded, or its files cannot be used.
    """
    if trusted and _is_folder(name):
        folder = Path(name).resolve()
        if (own := folder_preset(name, folder, _stamp(folder))) is not None:
            return own
        if (folder / ADAPTER_FILE).is_file() and not (folder / WEIGHTS_FILE).is_file():
            raise CheckpointError(ADAPTER_ALONE, name)
        return prove(_outline(name, "folder", str(folder), _stamp(folder), folder, trusted=True))
    # Kept, because it is asked for with every request while the preset is in use.
    found = _repositories.get((name, trusted)) or _read_repository(name, progress, trusted)
    return prove(found) if proved and found.structure is None else found


def _stamp(folder: Path) -> str:
    """Changes with the files of a folder, as a commit does: weights that are saved anew are loaded anew."""
    files = [folder / name for name in (CONFIG_FILE, *PROCESSOR_FILES, TOKENIZER_FILE, WEIGHTS_FILE)]
    states = [file.stat() for file in files if file.is_file()]
    return " ".join(f"{state.st_mtime_ns}-{state.st_ctime_ns}-{state.st_size}" for state in states)


def _is_folder(name: str) -> bool:
    try:
        return Path(name).is_dir()
    except (OSError, ValueError):  # too long, or not a valid path
        return False


def _read_repository(name: str, progress: DownloadProgress | None, trusted: bool) -> Preset:
    repo, _, revision = name.partition("@")
    most = limits.MAX_JSON_BYTES

    def fetch_own(file: str, revision: str, most: int | None = None) -> Path:
        try:
            return fetch(repo, file, revision, progress, trusted=trusted, max_bytes=most)
        except MissingFileError:
            with suppress(MissingFileError):
                fetch(repo, ADAPTER_FILE, revision, progress, trusted=trusted, max_bytes=limits.MAX_JSON_BYTES)
                raise CheckpointError(ADAPTER_ALONE, name) from None
            raise

    def fetch_optional(file: str, most: int) -> None:
        """Fetches a file that a repository need not have; without the Hub, what is cached whole has none."""
        with suppress(MissingFileError):
            try:
                fetch(repo, file, commit, progress, trusted=trusted, max_bytes=most)
            except UnreachableError:
                is_lost = (config.parent / file).is_symlink()  # which its library has fetched
                if is_lost or not is_cached(repo, WEIGHTS_FILE, commit, trusted=trusted):
                    raise

    config = fetch_own(CONFIG_FILE, revision or "main", most)
    commit = config.parent.name  # all files come from one commit, even if the branch moves meanwhile
    with nullcontext() if trusted else visitor_cache.in_use(repo, commit):
        for file in PROCESSOR_FILES:  # timm writes none
            fetch_optional(file, most)
        if takes_words(read_json_object(config, name)):  # else its picture tower is explained without words
            fetch_optional(TOKENIZER_FILE, limits.MAX_TOKENIZER_BYTES)
        outlined = _outline(name, "hub", repo, commit, config.parent, trusted=trusted)  # before the large file
        with suppress(MissingFileError):  # `_load` gives the reason
            fetch_own(WEIGHTS_FILE, commit)
        return outlined


def _outline(name: str, source: Kind, repo: str, revision: str, folder: Path, *, trusted: bool) -> Preset:
    """The preset as far as ``config.json`` alone determines it, within all limits."""
    config = read_json_object(folder / CONFIG_FILE, name)
    files = [folder / file for file in PROCESSOR_FILES]
    nested, flat = (read_json_object(file, name) if file.is_file() else None for file in files)
    try:
        processor = Fields(nested or {}, PROCESSOR_FILES[0], nullable=True).get("image_processor", OBJECT, flat)
        found = parse_preprocessing(config, processor)
        words = takes_words(config) and (folder / TOKENIZER_FILE).is_file()
        shape, has_mask, count = bounded_outline(config, found.image_size, name, words=words)
        if shape.in_channels != 3:
            raise PresetError(f"its input has {shape.in_channels} channels: choose a model for RGB photos.")
        takes_imagenet = shape.num_classes == len(IMAGENET_LABELS) and not found.labels
        labels, note = (IMAGENET_LABELS, IMAGENET_ASSUMED) if takes_imagenet else (found.labels, "")
        note = joined(found.note, note)
        scores = scores_for(found.problem_type, shape.num_classes)
        if words:
            labels, scores = DEFAULT_WORDS, "softmax" if config["model_type"] == "clip" else "sigmoid"
        if not labels and "clip" in str(config.get("architecture", "")):
            shape = replace(shape, num_classes=0)  # its output is an embedding
        preset = Preset(
            name=name,
            title=sanitize(repo.rstrip("/").rsplit("/", 1)[-1], limits.MAX_LABEL_LENGTH),
            task="photos",
            config=shape,
            labels=_shown(labels, shape.num_classes),
            patch_sizes=(shape.patch_size,),
            default_patch_size=shape.patch_size,
            flexible=False,
            source=source,
            **{name: getattr(found, name) for name in PREPARED},
            scores=scores,
            takes_words=words,
            assumed=note,
            repo=repo,
            revision=revision,
            library="timm" if "architecture" in config else "transformers",
            has_mask=has_mask,
            parameters=count,
            trusted=trusted,
            note=joined(sentence("Trained at {0} px; other patch sizes are resampled.", shape.patch_size), note),
        )
        if not trusted:
            limits.check_for_visitors(preset.config, count, has_mask=has_mask)
        return preset
    except PresetError as error:
        raise PresetError(f"{name}: {error}") from error


def prove(preset: Preset, on_module: Callable[[], object] = lambda: None) -> Preset:
    """The preset with what its network says of itself once it has its weights, which a few passes prove.

    Before each of its modules runs, ``on_module`` is called; what that raises ends it. Raises as ``custom_preset``.
    """
    folder, most = Path(preset.repo), limits.MAX_JSON_BYTES
    with nullcontext() if preset.trusted else visitor_cache.in_use(preset.repo, preset.revision):
        if not preset.is_folder:
            folder = fetch(preset.repo, CONFIG_FILE, preset.revision, trusted=preset.trusted, max_bytes=most).parent
        try:
            network = _load(preset, folder, on_module)
        except PresetError as error:
            raise PresetError(f"{preset.name}: {error}") from error
    config = replace(network.config, num_classes=preset.config.num_classes)
    sizes = preset.patch_sizes
    if hasattr(network.module, "set_input_size"):
        sizes = offered_patch_sizes(config.image_size, config.patch_size)
    if not preset.trusted:  # a public page has limits
        sizes = tuple(
            p
            for p in sizes
            if p <= limits.MAX_VISITOR_PATCH and limits.is_affordable(preset.config, p, has_mask=preset.has_mask)
        )
    proved = replace(preset, config=config, structure=network.structure, patch_sizes=sizes)
    if not preset.is_folder:
        with _lock:
            if len(_repositories) >= MOST_REPOSITORIES:
                del _repositories[next(iter(_repositories))]  # the oldest
            _repositories[preset.name, preset.trusted] = proved
    return proved


@torch.inference_mode(False)
def load_network(preset: Preset, patch_size: int) -> TracedViT:
    """The network of a preset of the Hub or a folder, in eval mode and float32, on the CPU."""
    with nullcontext() if preset.trusted else visitor_cache.in_use(preset.repo, preset.revision):
        network = _load(preset, fetch_files(preset)).resized(patch_size)
        network.scores = preset.scores
        return network


@torch.inference_mode(False)  # no method that needs gradients could use an inference tensor
def _load(preset: Preset, folder: Path, on_module: Callable[[], object] = lambda: None) -> TracedViT:
    path = folder / WEIGHTS_FILE
    if not path.is_file():
        raise CheckpointError(
            "{0} has no {1}: save the weights as one safetensors file; pickled weights (.bin, .pth) are never opened, "
            "because opening them can run arbitrary code.",
            preset.name,
            WEIGHTS_FILE,
        )
    if path.stat().st_size > limits.MAX_WEIGHTS_BYTES:
        most = limits.MAX_WEIGHTS_BYTES // 10**9
        raise CheckpointError(
            "{0}: {1} is larger than {2} GB: choose a smaller model.", preset.name, WEIGHTS_FILE, most
        )
    config = read_json_object(folder / CONFIG_FILE, preset.name)
    module = build_network(config, preset.name, words=preset.takes_words)
    module = load_tensors(module, to_finite_float32(read_tensors(path), preset.name), config, preset.name)
    if preset.takes_words:
        module = _with_words(module, preset, folder)
    if preset.structure is not None:
        return TracedViT(module, preset.config, preset.structure)
    with hooked(module.modules(), lambda *_: on_module()):
        network = adapt(module, preset.image_size, patch_size=preset.config.patch_size)
    network.config = replace(network.config, num_classes=preset.config.num_classes)
    return network


def _with_words(module: Any, preset: Preset, folder: Path) -> WordClassifier:
    """A network of pictures and text as a classifier of words."""
    file = read_json_object(folder / TOKENIZER_FILE, preset.name, limits.MAX_TOKENIZER_BYTES)
    shape, is_softmax = module.config.text_config, preset.scores == "softmax"
    length, vocabulary = shape.max_position_embeddings, shape.vocab_size
    tokenize = tokenizer_of(file, is_softmax=is_softmax, length=length, vocabulary=vocabulary)
    classifier = WordClassifier(module, tokenize, preset.labels, preset.template)
    if not torch.isfinite(classifier.compare.text).all():
        raise CheckpointError("What {0} makes of words is not a number: choose another model.", preset.name)
    return classifier


@torch.inference_mode(False)
def load_own(preset: Preset) -> ViT:
    """The network of a preset of the Hub that is one of this package, with timm's weights."""
    tensors = to_finite_float32(read_tensors(fetch_files(preset) / WEIGHTS_FILE), preset.name)
    try:
        return own_network(preset.config, tensors)
    except RuntimeError as error:
        raise CheckpointError(
            "{0} of {1} holds another network than {2}: choose another model.", WEIGHTS_FILE, preset.repo, preset.name
        ) from error


def own_network(config: ViTConfig, tensors: dict[str, Tensor]) -> ViT:
    """A network of this package with its weights, in eval mode; ``RuntimeError`` if they are another network's."""
    with torch.device("meta"):
        model = ViT(config)
    model.load_state_dict(tensors, assign=True)
    return model.eval().requires_grad_(False)


def fetch_files(preset: Preset, progress: DownloadProgress | None = None) -> Path:
    """The folder with a preset's config and weights, downloaded if necessary."""
    if preset.is_folder:
        return Path(preset.repo)
    if preset.library:
        most = limits.MAX_JSON_BYTES
        fetch(preset.repo, CONFIG_FILE, preset.revision, progress, trusted=preset.trusted, max_bytes=most)
    if preset.takes_words:
        most = limits.MAX_TOKENIZER_BYTES
        fetch(preset.repo, TOKENIZER_FILE, preset.revision, progress, trusted=preset.trusted, max_bytes=most)
    return fetch(preset.repo, WEIGHTS_FILE, preset.revision, progress, trusted=preset.trusted).parent


def is_on_machine(preset: Preset) -> bool:
    """Whether a preset's weights need no download; their hash is not compared here."""
    if not preset.is_downloaded:
        return True
    files = (WEIGHTS_FILE, TOKENIZER_FILE) if preset.takes_words else (WEIGHTS_FILE,)
    return all(is_cached(preset.repo, file, preset.revision, trusted=preset.trusted) for file in files)


def _shown(labels: tuple[str, ...], num_classes: int) -> tuple[str, ...]:
    """A sanitized name for each output."""
    labels = labels if len(labels) == num_classes else ("",) * num_classes
    return tuple(sanitize(label, limits.MAX_LABEL_LENGTH) or f"class {i}" for i, label in enumerate(labels))
