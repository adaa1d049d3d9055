"""The documented endpoints, for ``gradio_client``, plain HTTP and MCP."""

from vit_demo.web.api.explanations import (
    drop_patches,
    explain,
    explain_image,
    faithfulness,
    labels,
    logit_lens,
    methods,
    overlay,
    predict,
    presets,
)
from vit_demo.web.api.features import kmeans, norms, pca, similarity

ENDPOINTS = (
    presets, labels, methods, predict, explain, overlay, explain_image, logit_lens, drop_patches, faithfulness,
    similarity, pca, kmeans, norms,
)  # fmt: skip
"""Every endpoint of the page, in the order of the documentation."""
