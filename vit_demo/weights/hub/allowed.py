"""What the files of a repository may say: architectures, processors, and the fields of each with their ranges.

A field that could change a network and is not here is refused.
"""

from vit_demo.weights import limits
from vit_demo.weights.hub.json_fields import BOOLEAN, ValueKind, choice, list_of, number, one_or_object_of, whole

TIMM_MODULES = ("vision_transformer", "deit", "eva", "beit", "naflexvit", "vision_transformer_relpos")
"""timm's files of plain Vision Transformers; what else it has is hierarchical or convolutional."""
DYNAMIC = ("vision_transformer", "deit", "eva")  # those whose networks can take pictures of any shape
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
TWO_TOWERS = {"clip": "CLIPModel", "siglip": "SiglipModel"}  # their classes with a tokenizer beside them
TOKEN = whole(0, limits.MAX_VOCABULARY)
TEXT_FIELDS = {
    "vocab_size": whole(1, limits.MAX_VOCABULARY),
    "max_position_embeddings": whole(2, limits.MAX_TEXT_LENGTH),
    "projection_size": whole(1, limits.MAX_CLASSES),
    **dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id"), TOKEN),
}
"""Further fields of a text tower."""
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

INTERPOLATIONS = ("nearest", "lanczos", "bilinear", "bicubic", "box", "hamming")  # by the number that Pillow gives each
LEAST_CROP = 0.25  # the smallest crop fraction
MOST_RESIZED = int(518 / LEAST_CROP)  # largest size of a processor, in pixels, for little memory; DINOv2 has 518
MEAN, STD = list_of(number(-1e3, 1e3), 3), list_of(number(1e-3, 1e3), 3)
TIMM_CFG = {
    "mean": MEAN,
    "std": STD,
    "crop_pct": number(LEAST_CROP, 1),
    "crop_mode": choice("center", "squash", "border"),
    "interpolation": choice(*INTERPOLATIONS),
}
"""What timm's ``pretrained_cfg`` may say of photos."""
PROCESSOR_FIELDS = {
    "size": one_or_object_of(whole(1, MOST_RESIZED)),
    "crop_size": one_or_object_of(whole(1, MOST_RESIZED)),
    "resample": choice(0, 1, 2, 3),  # that transformers knows
    "rescale_factor": number(1e-6, 1e6),
    "image_mean": MEAN,
    "image_std": STD,
    "crop_pct": number(LEAST_CROP, 1),
    "do_pad": ValueKind("false", lambda value: value is False),
    **dict.fromkeys(
        ("do_resize", "do_center_crop", "do_rescale", "do_normalize", "default_to_square", "do_flip_channel_order"),
        BOOLEAN,
    ),
}
"""What a processor may be told."""
PROCESSORS = {
    "vit": "ViT", "beit": "Beit", "deit": "DeiT", "clip": "CLIP", "siglip": "Siglip", "dinov2": "Bit",
    "dinov3": "DINOv3ViT",
}  # fmt: skip
"""transformers' processor by the first word of a ``model_type``, where the repository names none."""
ALLOWED_PROCESSORS = (*PROCESSORS.values(), "Blip", "ConvNext", "MobileViT")  # those that a repository may name
