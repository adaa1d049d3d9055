"""Networks of repositories and folders: built by timm or transformers, by the name of their architecture.

Nothing of a repository runs: its ``config.json`` is read field by field, and a field that could change the network
without being checked here is refused. Before it takes memory, a network is built on torch's meta device and bounded.
"""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn

from vit_demo.errors import CheckpointError, PresetError
from vit_demo.model import ViTConfig
from vit_demo.trace import outline
from vit_demo.weights import limits
from vit_demo.weights.hub.allowed import (
    CLASS_COUNT,
    CLASSES,
    DYNAMIC,
    FIELDS,
    NO_EFFECT,
    TEXT_FIELDS,
    TIMM_MODULES,
    TOWERS,
    TRANSFORMERS_FIELDS,
    TRANSFORMERS_NO_EFFECT,
    TWO_TOWERS,
)
from vit_demo.weights.hub.json_fields import TEXT, Fields, ValueKind, choice
from vit_demo.weights.untrusted_text import quote, sanitize
from vit_demo.words.classifier import WordClassifier
from vit_demo.words.texts import AS_TYPED, DEFAULT_WORDS


def takes_words(config: dict[str, Any]) -> bool:
    """Whether a network is one of pictures and text, whose classes are words if it has a tokenizer."""
    return "architecture" not in config and config.get("model_type") in list(TWO_TOWERS)


@torch.inference_mode(False)  # no method that needs gradients could use an inference tensor
def build_network(config: dict[str, Any], name: str, *, words: bool = False) -> nn.Module:
    """A network with random weights, in eval mode, on torch's default device; ``PresetError`` if none is made.

    With ``words`` it has its text tower, too; see ``takes_words``.
    """
    try:
        with torch.random.fork_rng(devices=[]), warnings.catch_warnings(action="ignore"):
            if "architecture" in config:
                return _timm(config).eval()
            return (_two_towers if words else _transformers)(config).eval()
    except PresetError:
        raise
    except Exception as error:  # whatever a library raises for the arguments of a stranger
        reason = sanitize(str(error).partition("\n")[0], limits.MAX_QUOTE_LENGTH)
        raise PresetError(
            "{0} cannot be built from its config.json ({1}): choose another model.", name, reason
        ) from error


def bounded_outline(
    config: dict[str, Any], image_size: int, name: str, *, words: bool = False
) -> tuple[ViTConfig, bool, int]:
    """The shape of a network within ``limits``, and its number of parameters, found without taking memory for it."""
    with torch.device("meta"):
        module = build_network(config, name, words=words)
        count = sum(parameter.numel() for parameter in module.parameters())
        tensors = (*module.parameters(), *module.buffers())
        if sum(tensor.numel() * tensor.element_size() for tensor in tensors) > limits.MAX_NETWORK_BYTES:
            raise PresetError(f"this model takes more than {limits.MAX_NETWORK_BYTES >> 30} GB: choose a smaller one.")
        seen = WordClassifier(module, None, DEFAULT_WORDS, AS_TYPED) if words else module
        shape, has_mask = outline(seen, image_size)
    limits.check_network(shape)
    return shape, has_mask, count


def load_tensors(module: nn.Module, tensors: dict[str, Tensor], config: dict[str, Any], name: str) -> nn.Module:
    """The network with its weights; ``CheckpointError`` names the first tensor that has no counterpart of its shape."""
    if "architecture" in config:
        wanted = {name: tensor.shape for name, tensor in module.state_dict().items()}
        differing = sorted(
            {name for name, _ in wanted.items() ^ {name: x.shape for name, x in tensors.items()}.items()}
        )
        if not differing:
            module.load_state_dict(tensors)
    else:
        is_whole = type(module).__name__ in TWO_TOWERS.values()
        prefixes = ("",) if is_whole else TOWERS.get(str(config["model_type"]), ("",))
        tensors = {
            key: tensor
            for key, tensor in tensors.items()
            if key.startswith(prefixes) and not key.endswith(".position_ids")  # of older files: 0, 1, 2, ...
        }
        with (
            warnings.catch_warnings(action="ignore"),
            _without_progress_bar(),
        ):  # transformers renames the tensors of older files itself
            loader: Any = type(module)
            module, found = loader.from_pretrained(
                None,
                config=module.config,
                state_dict=tensors,
                output_loading_info=True,
                ignore_mismatched_sizes=True,
                attn_implementation="sdpa",
            )
        differing = sorted(
            str(key[0] if isinstance(key, tuple) else key)
            for kind in ("missing_keys", "unexpected_keys", "mismatched_keys")
            for key in found[kind]
        )
    if differing:
        raise CheckpointError("The weights of {0} do not fit its config.json: {1} differs.", name, quote(differing[0]))
    return module.eval().requires_grad_(False)


def _timm(config: dict[str, Any]) -> nn.Module:
    import timm

    fields = Fields(config, "config.json", nullable=True)
    architecture = fields.get("architecture", TEXT).partition(".")[0]
    if architecture not in _timm_architectures():
        raise PresetError(
            f"timm's {quote(architecture)} is not supported, because it is not a Vision Transformer: "
            "see docs/models.md."
        )
    given = fields.nested("model_args", nullable=False)
    arguments: dict[str, Any] = {}
    for key, value in given.values.items():
        if key in FIELDS:
            is_default = value is None and key in ("mlp_ratio", "init_values")
            arguments[key] = None if is_default else given.get(key, FIELDS[key])
        elif key not in NO_EFFECT:
            raise PresetError(f"this {architecture} is not supported, because it was created with {quote(key)}.")
    if "global_pool" in fields and "global_pool" not in arguments:
        arguments["global_pool"] = fields.get("global_pool", FIELDS["global_pool"])
    cfg = fields.nested("pretrained_cfg")
    count = fields.get("num_classes", CLASS_COUNT, None)
    arguments["num_classes"] = cfg.get("num_classes", CLASS_COUNT, 1000) if count is None else count
    if "img_size" in given:
        arguments["img_size"] = given.sizes("img_size", 2)
    if timm.models.model_entrypoint(architecture).__module__.rpartition(".")[2] in DYNAMIC:
        arguments["dynamic_img_size"] = True  # photos keep their shape
    return timm.create_model(architecture, pretrained=False, **arguments)


@cache
def _timm_architectures() -> frozenset[str]:
    import timm

    return frozenset(name for module in TIMM_MODULES for name in timm.list_models(module=module))


def _transformers(config: dict[str, Any]) -> nn.Module:
    fields = Fields(config, "config.json")
    if "model_type" not in fields:
        raise PresetError("its config.json has neither timm's architecture nor transformers' model_type.")
    kind = fields.get("model_type", TEXT)
    if kind not in CLASSES:
        known = ", ".join(sorted(CLASSES))
        raise PresetError(f"a model of type {quote(kind)} is not supported: of transformers only {known} are.")
    import transformers

    named = [name for name in fields.texts("architectures") if name in CLASSES[kind]]
    network = getattr(transformers, named[0] if named else CLASSES[kind][0])
    if kind in TOWERS:
        arguments = _arguments(network.config_class, fields.nested("vision_config"))
        if "projection_dim" in fields:
            arguments["projection_dim"] = fields.get("projection_dim", TRANSFORMERS_FIELDS["projection_dim"])
    else:
        arguments = _arguments(network.config_class, fields)
        if labels := fields.numbered_texts("id2label"):
            arguments["num_labels"] = len(labels)
        elif "num_labels" in fields:
            arguments["num_labels"] = fields.get("num_labels", CLASS_COUNT)
    made = network.config_class(**arguments)
    made._attn_implementation = "sdpa"
    return network(made)


def _two_towers(config: dict[str, Any]) -> nn.Module:
    fields = Fields(config, "config.json")
    import transformers

    network = getattr(transformers, TWO_TOWERS[fields.get("model_type", choice(*TWO_TOWERS))])
    classes = network.config_class.sub_configs
    arguments: dict[str, Any] = {
        part: _arguments(classes[part], fields.nested(part), further)
        for part, further in (("text_config", TEXT_FIELDS), ("vision_config", {}))
    }
    if "projection_dim" in fields:
        arguments["projection_dim"] = fields.get("projection_dim", TRANSFORMERS_FIELDS["projection_dim"])
    made = network.config_class(**arguments)
    made._attn_implementation = "sdpa"
    return network(made)


def _arguments(
    config_class: Any, fields: Fields, further: Mapping[str, ValueKind] = MappingProxyType({})
) -> dict[str, Any]:
    """The fields of ``config.json`` that a class of transformers takes, each checked.

    One that may change the network and is not among those that are checked is refused.
    """
    arguments, defaults, known = dict[str, Any](), config_class(), {**TRANSFORMERS_FIELDS, **further}
    for key, value in fields.values.items():
        if (key in TRANSFORMERS_NO_EFFECT and key not in further) or not hasattr(defaults, key):
            continue
        if value == getattr(defaults, key) and type(value) is type(getattr(defaults, key)):
            continue
        if key in ("image_size", "patch_size") and isinstance(value, list):
            height, width = fields.sizes(key, 2)
            if height != width:
                raise PresetError(f"this model is not supported, because its {key} is not square.")
            arguments[key] = height
        elif key in known:
            arguments[key] = fields.get(key, known[key])
        else:
            raise PresetError(f"this model is not supported, because its config.json sets {quote(key)}.")
    return arguments


@contextmanager
def _without_progress_bar() -> Iterator[None]:
    """Without the bar that transformers draws for tensors that are in memory already."""
    from transformers.utils import logging

    was_enabled = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if was_enabled:
            logging.enable_progress_bar()
