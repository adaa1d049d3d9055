"""Networks of repositories and folders: built by timm or transformers, by the name of their architecture.

Nothing of a repository runs: its ``config.json`` is read field by field, and a field that could change the network
without being checked here is refused. Before it takes memory, a network is built on torch's meta device and bounded.
"""

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
from vit_demo.weights.hub.json_fields import BOOLEAN, TEXT, Fields, choice, number, whole
from vit_demo.weights.hub.untrusted_text import quote, sanitize

TIMM_MODULES = ("vision_transformer", "deit", "eva", "beit", "naflexvit", "vision_transformer_relpos")
"""timm's files of plain Vision Transformers; what else it has is hierarchical or convolutional."""
DYNAMIC = ("vision_transformer", "deit", "eva")
"""Those whose networks can take pictures of any shape."""
SIZE, REGISTERS = whole(1, limits.MAX_IMAGE_SIZE), whole(0, limits.MAX_REGISTERS)
CLASS_COUNT = whole(0, limits.MAX_CLASSES)
FIELDS = {
    "patch_size": SIZE,
    "embed_dim": whole(1, limits.MAX_EMBED_DIM),
    "depth": whole(1, limits.MAX_DEPTH),
    "num_heads": whole(1, limits.MAX_HEADS),
    "in_chans": whole(1, 16),
    "reg_tokens": REGISTERS,
    "num_reg_tokens": REGISTERS,
    "mlp_ratio": number(0, limits.MAX_MLP_RATIO),
    "init_values": number(0, 10),
    "global_pool": choice("token", "avg", "map", "avgmax", "max"),
    "pos_embed": choice("learn", "none", ""),
    **dict.fromkeys(
        ("class_token", "no_embed_class", "qkv_bias", "qk_norm", "pre_norm", "final_norm", "fc_norm", "qkv_fused",
         "scale_mlp", "scale_attn_inner", "swiglu_mlp", "use_abs_pos_emb", "use_rot_pos_emb", "use_rel_pos_bias"),
        BOOLEAN,
    ),
}  # fmt: skip
"""Arguments of timm's networks that may be given, and what they may be."""
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
TRANSFORMERS_FIELDS = {
    "hidden_size": whole(1, limits.MAX_EMBED_DIM),
    "num_hidden_layers": whole(1, limits.MAX_DEPTH),
    "num_attention_heads": whole(1, limits.MAX_HEADS),
    "intermediate_size": whole(1, 1 << 16),
    "image_size": SIZE,
    "patch_size": SIZE,
    "num_channels": whole(1, 16),
    "num_register_tokens": REGISTERS,
    "projection_dim": whole(1, limits.MAX_CLASSES),
    "pooler_output_size": whole(1, limits.MAX_CLASSES),
    "mlp_ratio": number(0, limits.MAX_MLP_RATIO),
    "layer_norm_eps": number(0, 0.1),
    "layerscale_value": number(0, 10),
    "layer_scale_init_value": number(0, 10),
    "rope_theta": number(0, 1e6),
    "hidden_act": choice("gelu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh", "quick_gelu", "silu", "relu"),
    **dict.fromkeys(
        ("qkv_bias", "use_swiglu_ffn", "use_absolute_position_embeddings", "use_relative_position_bias",
         "use_gated_mlp", "use_shared_relative_position_bias", "use_mean_pooling", "use_mask_token", "query_bias",
         "key_bias", "value_bias", "proj_bias", "mlp_bias", "vision_use_head"),
        BOOLEAN,
    ),
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
        with torch.random.fork_rng(devices=[]), warnings.catch_warnings(action="ignore"):
            return (_timm if "architecture" in config else _transformers)(config).eval()
    except PresetError:
        raise
    except Exception as error:  # whatever a library raises for the arguments of a stranger
        reason = sanitize(str(error).partition("\n")[0], limits.MAX_QUOTE_LENGTH)
        raise PresetError(
            "{0} cannot be built from its config.json ({1}): choose another model.", name, reason
        ) from error


def bounded_outline(config: dict[str, Any], image_size: int, name: str) -> tuple[ViTConfig, bool, int]:
    """The shape of a network within ``limits``, and its number of parameters, found without taking memory for it."""
    with torch.device("meta"):
        module = build_network(config, name)
        count = sum(parameter.numel() for parameter in module.parameters())
        tensors = (*module.parameters(), *module.buffers())
        if sum(tensor.numel() * tensor.element_size() for tensor in tensors) > limits.MAX_NETWORK_BYTES:
            raise PresetError(f"this model takes more than {limits.MAX_NETWORK_BYTES >> 30} GB: choose a smaller one.")
        shape, has_mask = outline(module, image_size)
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
        prefixes = TOWERS.get(str(config["model_type"]), ("",))
        tensors = {key: tensor for key, tensor in tensors.items() if key.startswith(prefixes)}
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
        elif key in TRANSFORMERS_FIELDS:
            arguments[key] = fields.get(key, TRANSFORMERS_FIELDS[key])
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
