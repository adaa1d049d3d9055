"""Networks of repositories and folders: built by timm or transformers, by the name of their architecture.

Nothing of a repository runs: its ``config.json`` is read field by field, and a field that could change the network
without being checked here is refused. Before it takes memory, a network is built on torch's meta device and bounded.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from vit_demo.errors import CheckpointError, PresetError
from vit_demo.model import ViTConfig
from vit_demo.trace import outline
from vit_demo.weights import limits
from vit_demo.weights.hub.json_fields import Fields
from vit_demo.weights.hub.untrusted_text import quote, sanitize

TIMM_MODULES = ("vision_transformer", "deit", "eva", "beit", "naflexvit", "vision_transformer_relpos")
"""timm's files of plain Vision Transformers; what else it has is hierarchical or convolutional."""
DYNAMIC = ("vision_transformer", "deit", "eva")
"""Those whose networks can take pictures of any shape."""
INTEGERS = {
    "patch_size": limits.MAX_IMAGE_SIZE, "embed_dim": limits.MAX_EMBED_DIM, "depth": limits.MAX_DEPTH,
    "num_heads": limits.MAX_HEADS, "in_chans": 16, "reg_tokens": limits.MAX_REGISTERS,
    "num_reg_tokens": limits.MAX_REGISTERS,
}  # fmt: skip
"""Arguments of timm's networks that are whole numbers, and their largest values."""
NUMBERS = {"mlp_ratio": limits.MAX_MLP_RATIO, "init_values": 10.0}
FLAGS = {
    "class_token", "no_embed_class", "qkv_bias", "qk_norm", "pre_norm", "final_norm", "fc_norm", "qkv_fused",
    "scale_mlp", "scale_attn_inner", "swiglu_mlp", "use_abs_pos_emb", "use_rot_pos_emb", "use_rel_pos_bias",
}  # fmt: skip
CHOICES = {"global_pool": ("token", "avg", "map", "avgmax", "max"), "pos_embed": ("learn", "none", "")}
NO_EFFECT = {
    "dynamic_img_size", "dynamic_img_pad", "drop_rate", "pos_drop_rate", "patch_drop_rate", "proj_drop_rate",
    "attn_drop_rate", "drop_path_rate", "weight_init", "fix_init", "pretrained", "num_classes", "img_size",
}  # fmt: skip
"""Arguments that change no output of a trained network, or are read elsewhere."""

CLASSES = {
    "vit": ("ViTForImageClassification", "ViTModel"),
    "deit": ("DeiTForImageClassification", "DeiTForImageClassificationWithTeacher", "DeiTModel"),
    "vit_msn": ("ViTMSNForImageClassification",),
    "dinov2": ("Dinov2ForImageClassification", "Dinov2Model"),
    "dinov2_with_registers": ("Dinov2WithRegistersForImageClassification", "Dinov2WithRegistersModel"),
    "dinov3_vit": ("DINOv3ViTModel",),
    "beit": ("BeitForImageClassification", "BeitModel"),
    "clip": ("CLIPVisionModelWithProjection",),
    "clip_vision_model": ("CLIPVisionModelWithProjection", "CLIPVisionModel"),
    "siglip": ("SiglipVisionModel",),
    "siglip_vision_model": ("SiglipVisionModel",),
}
"""The classes of transformers by ``model_type``; the first is taken where ``config.json`` names no other of them."""
TOWERS = {"clip": ("vision_model.", "visual_projection."), "siglip": ("vision_model.",)}
"""Models of pictures and text, and the tensors of their picture tower."""
ACTIVATIONS = ("gelu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh", "quick_gelu", "silu", "relu")
TRANSFORMERS_INTEGERS = {
    "hidden_size": limits.MAX_EMBED_DIM, "num_hidden_layers": limits.MAX_DEPTH, "num_attention_heads": limits.MAX_HEADS,
    "intermediate_size": 1 << 16, "image_size": limits.MAX_IMAGE_SIZE, "patch_size": limits.MAX_IMAGE_SIZE,
    "num_channels": 16, "num_register_tokens": limits.MAX_REGISTERS, "projection_dim": limits.MAX_CLASSES,
    "pooler_output_size": limits.MAX_CLASSES,
}  # fmt: skip
TRANSFORMERS_NUMBERS = {
    "mlp_ratio": limits.MAX_MLP_RATIO, "layer_norm_eps": 0.1, "layerscale_value": 10.0, "layer_scale_init_value": 10.0,
    "rope_theta": 1e6,
}  # fmt: skip
TRANSFORMERS_FLAGS = {
    "qkv_bias", "use_swiglu_ffn", "use_absolute_position_embeddings", "use_relative_position_bias", "use_gated_mlp",
    "use_shared_relative_position_bias", "use_mean_pooling", "use_mask_token", "query_bias", "key_bias", "value_bias",
    "proj_bias", "mlp_bias", "vision_use_head",
}  # fmt: skip
TRANSFORMERS_NO_EFFECT = {
    "architectures", "model_type", "id2label", "label2id", "num_labels", "problem_type", "dtype", "torch_dtype",
    "transformers_version", "initializer_range", "initializer_factor", "hidden_dropout_prob", "attention_dropout",
    "attention_probs_dropout_prob", "dropout", "drop_path_rate", "encoder_stride", "out_features", "out_indices",
    "stage_names", "apply_layernorm", "reshape_hidden_states", "semantic_loss_ignore_index", "auxiliary_loss_weight",
    "_name_or_path", "name_or_path", "vocab_size", "pool_scales", "use_auxiliary_head", "auxiliary_channels",
    "auxiliary_num_convs", "auxiliary_concat_input", "return_dict", "use_cache", "pos_embed_rescale",
    "pos_embed_shift", "pos_embed_jitter", "text_config", "vision_config", "logit_scale_init_value", "add_fpn",
    "chunk_size_feed_forward", "is_encoder_decoder", "output_attentions", "output_hidden_states",
}  # fmt: skip


def build_network(config: dict[str, Any], name: str) -> nn.Module:
    """A network with random weights, in eval mode, on torch's default device; ``PresetError`` if none is made."""
    try:
        with torch.random.fork_rng(devices=[]), _quiet():
            return (_timm if "architecture" in config else _transformers)(config).eval()
    except PresetError:
        raise
    except Exception as error:  # whatever a library raises for the arguments of a stranger
        reason = sanitize(str(error).partition("\n")[0], limits.MAX_QUOTE_LENGTH)
        raise PresetError(f"{name} cannot be built from its config.json ({reason}): choose another model.") from error


def bounded_outline(config: dict[str, Any], image_size: int, name: str) -> tuple[ViTConfig, bool, int]:
    """The shape of a network within ``limits``, and its number of parameters, found without taking memory for it."""
    with torch.device("meta"):
        module = build_network(config, name)
        count = sum(parameter.numel() for parameter in module.parameters())
        if num_bytes_of(module) > limits.MAX_NETWORK_BYTES:
            raise PresetError(f"this model takes more than {limits.MAX_NETWORK_BYTES >> 30} GB: choose a smaller one.")
        shape, has_mask = outline(module, image_size)
    limits.check_network(shape)
    return shape, has_mask, count


def num_bytes_of(module: nn.Module) -> int:
    """Memory of a network's parameters and buffers, also of one on the meta device."""
    return sum(tensor.numel() * tensor.element_size() for tensor in (*module.parameters(), *module.buffers()))


def load_tensors(module: nn.Module, tensors: dict[str, Tensor], config: dict[str, Any], name: str) -> nn.Module:
    """The network with its weights; ``CheckpointError`` names the first tensor that has no counterpart of its shape."""
    if "architecture" in config:
        differing = _differences(module.state_dict(), tensors)
        if not differing:
            module.load_state_dict(tensors)
    else:
        prefixes = TOWERS.get(str(config["model_type"]), ("",))
        tensors = {key: tensor for key, tensor in tensors.items() if key.startswith(prefixes)}
        with _quiet(), _without_progress_bar():  # transformers renames the tensors of older files itself
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
        raise CheckpointError(f"The weights of {name} do not fit its config.json: {quote(differing[0])} differs.")
    return module.eval().requires_grad_(False)


def _differences(wanted: dict[str, Tensor], found: dict[str, Tensor]) -> list[str]:
    return sorted(
        name
        for name in wanted.keys() | found.keys()
        if name not in wanted or name not in found or wanted[name].shape != found[name].shape
    )


def _timm(config: dict[str, Any]) -> nn.Module:
    import timm

    fields = Fields(config, "config.json", nullable=True)
    architecture = fields.string("architecture").partition(".")[0]
    if architecture not in _timm_architectures():
        raise PresetError(
            f"timm's {quote(architecture)} is not supported, because it is no Vision Transformer: see docs/models.md."
        )
    given = fields.nested("model_args", nullable=False)
    arguments: dict[str, Any] = {}
    for key in given.values:
        if key in INTEGERS:
            arguments[key] = given.integer(key, "reg" not in key, INTEGERS[key])
        elif key in NUMBERS:
            arguments[key] = None if given.values[key] is None else given.number(key, 0, NUMBERS[key])
        elif key in FLAGS:
            arguments[key] = given.boolean(key, False)
        elif key in CHOICES:
            arguments[key] = given.choice(key, CHOICES[key], None)
        elif key not in NO_EFFECT:
            raise PresetError(f"this {architecture} is not supported, because it was created with {quote(key)}.")
    if "global_pool" in fields and "global_pool" not in arguments:
        arguments["global_pool"] = fields.choice("global_pool", CHOICES["global_pool"], None)
    cfg = fields.nested("pretrained_cfg")
    count = fields.integer("num_classes", 0, limits.MAX_CLASSES, None)
    arguments["num_classes"] = cfg.integer("num_classes", 0, limits.MAX_CLASSES, 1000) if count is None else count
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
    kind = fields.string("model_type")
    if kind not in CLASSES:
        known = ", ".join(sorted(CLASSES))
        raise PresetError(f"a model of type {quote(kind)} is not supported: of transformers only {known} are.")
    if fields.values.get("problem_type") == "multi_label_classification":
        raise PresetError("this model gives several labels at once, not one class: choose another model.")
    import transformers

    named = [name for name in fields.strings("architectures") if name in CLASSES[kind]]
    network = getattr(transformers, named[0] if named else CLASSES[kind][0])
    if kind in TOWERS:
        arguments = _arguments(network.config_class, fields.nested("vision_config"))
        if "projection_dim" in fields:
            arguments["projection_dim"] = fields.integer("projection_dim", 1, limits.MAX_CLASSES)
    else:
        arguments = _arguments(network.config_class, fields)
        if labels := fields.numbered_strings("id2label"):
            arguments["num_labels"] = len(labels)
        elif "num_labels" in fields:
            arguments["num_labels"] = fields.integer("num_labels", 0, limits.MAX_CLASSES)
    made = network.config_class(**arguments)
    made._attn_implementation = "sdpa"
    return network(made)


def _arguments(config_class: Any, fields: Fields) -> dict[str, Any]:
    """The fields of ``config.json`` that a class of transformers takes, each checked.

    One that may change the network and is not among those that are checked is refused.
    """
    arguments, defaults = dict[str, Any](), config_class()
    for key, value in fields.values.items():
        if key in TRANSFORMERS_NO_EFFECT or not hasattr(defaults, key):
            continue
        if value == getattr(defaults, key) and type(value) is type(getattr(defaults, key)):
            continue
        if key in ("image_size", "patch_size") and isinstance(value, list):
            height, width = fields.sizes(key, 2)
            if height != width:
                raise PresetError(f"this model is not supported, because its {key} is not square.")
            arguments[key] = height
        elif key in TRANSFORMERS_INTEGERS:
            arguments[key] = fields.integer(key, "register" not in key, TRANSFORMERS_INTEGERS[key])
        elif key in TRANSFORMERS_NUMBERS:
            arguments[key] = fields.number(key, 0, TRANSFORMERS_NUMBERS[key])
        elif key in TRANSFORMERS_FLAGS:
            arguments[key] = fields.boolean(key, False)
        elif key == "hidden_act":
            arguments[key] = fields.choice(key, ACTIVATIONS, None)
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


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the libraries' own warnings; what matters is raised."""
    with warnings.catch_warnings(action="ignore"):
        yield
