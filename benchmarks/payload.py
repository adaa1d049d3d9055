"""What the page downloads of a result: the first reply, and the trace of the last block once it is needed.

Models of the Hub have random weights here, with noise on every parameter: their maps repeat less than those of trained
models, so that they compress no better.

Example:
    $ python -m benchmarks.payload
"""

from __future__ import annotations

import torch

from vit_demo.inference import engine
from vit_demo.trace import TracedViT
from vit_demo.web.components.pad import example_picture
from vit_demo.web.example_photos import EXAMPLE_PHOTOS
from vit_demo.web.packing import pack
from vit_demo.web.payload import block_payload, result_payload
from vit_demo.weights import PRESETS, Preset
from vit_demo.weights.checkpoints import load_model

CASES = {("digits-small", 4): 214, ("photos-tiny", 12): None, ("vit-s16", 16): 598, ("dinov2-s14", 14): 3000}
"""Preset and patch size, and the kB that such a result had as base64 in plain JSON, where they were measured."""


def random_or_bundled(preset: Preset, patch_size: int) -> TracedViT:
    """A bundled network, or one of the Hub with random weights."""
    if preset.source == "bundled":
        return load_model(preset, patch_size)
    torch.manual_seed(0)
    model = ViT(preset.config).eval().requires_grad_(False)
    for parameter in model.parameters():
        parameter.add_(torch.randn_like(parameter), alpha=0.05)
    model.patch_size = patch_size
    return model


def use_random_weights() -> None:
    """Gives the models of the Hub random weights in this process, so that nothing is downloaded."""
    engine.load_model = random_or_bundled  # type: ignore[assignment]
    engine.fetch_weights = lambda *_: None  # type: ignore[assignment]
    engine.is_on_machine = lambda *_: True


def main() -> None:
    """Prints a table in kB."""
    use_random_weights()
    run = engine.Engine("cpu")
    print("| preset, patch size | result | trace of a block | both | before |", "|---|---:|---:|---:|---:|", sep="\n")
    for (name, patch_size), before in CASES.items():
        preset = PRESETS[name]
        photo = next(iter(EXAMPLE_PHOTOS.values()))
        picture = example_picture(7) if preset.task == "digits" else photo.path
        result = run.explore(picture, name, patch_size)
        first = len(pack(result_payload(result, {}))) / 1000
        trace = len(pack(block_payload(result, result.trace.num_blocks - 1))) / 1000
        ratio = f"{before}, a share of {(first + trace) / before:.2f}" if before else ""
        print(f"| {name}, {patch_size} | {first:.0f} | {trace:.0f} | {first + trace:.0f} | {ratio} |", flush=True)


if __name__ == "__main__":
    main()
