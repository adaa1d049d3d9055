"""Averages the weights of several checkpoints of one network.

Training on further photos costs a little accuracy on earlier ones; the average of the checkpoints keeps more of both
(WiSE-FT; Wortsman et al., 2021, https://arxiv.org/abs/2109.01903). Run ``python -m vit_demo.training.average --help``.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import torch

from vit_demo.accelerator import best_device
from vit_demo.errors import CheckpointError, InputError
from vit_demo.model import ViT, ViTConfig
from vit_demo.training.export import export_checkpoint
from vit_demo.training.run import load_split
from vit_demo.weights import PRESETS
from vit_demo.weights.checkpoints import load_checkpoint


def average_checkpoints(weights: dict[Path, float]) -> tuple[ViT, list[dict[str, Any]]]:
    """The weighted mean of the parameters of several checkpoints.

    Args:
        weights: The weight of each checkpoint; positive, with any sum.

    Returns:
        The network, uncalibrated, because each checkpoint's temperature is undone first; and the checkpoints' records.

    Raises:
        CheckpointError: If a file cannot be read, or the networks differ.
    """
    checkpoints = [load_checkpoint(path) for path in weights]
    model = checkpoints[0][0]
    for path, (other, _) in zip(weights, checkpoints, strict=True):
        if other.config != model.config:
            raise CheckpointError(
                f"{path.name} holds another network than the first file: only equal ones can be averaged."
            )
    mean = {name: torch.zeros_like(tensor) for name, tensor in model.state_dict().items()}
    for weight, (other, record) in zip(weights.values(), checkpoints, strict=True):
        for name, tensor in other.state_dict().items():
            temperature = record.get("temperature", 1.0) if name.startswith("head.") else 1.0
            mean[name] += weight / sum(weights.values()) * temperature * tensor
    model.load_state_dict(mean)
    return model, [record for _, record in checkpoints]


def main(arguments: Sequence[str] | None = None) -> int:
    """Averages checkpoints, calibrates and evaluates the result, and writes it.

    Args:
        arguments: Overrides the command line.

    Returns:
        0, or 2 for bad input, with one line on stderr.
    """
    parser = _Parser(prog="vit_demo.training.average", description="Average the weights of several checkpoints.")
    parser.add_argument(
        "preset", choices=[name for name, preset in PRESETS.items() if preset.flexible and preset.source == "bundled"]
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="checkpoints of the preset's network")
    parser.add_argument(
        "--shares", nargs="+", type=float, required=True, metavar="W", help="the weight of each file, in their order"
    )
    parser.add_argument("--data", type=Path, required=True, metavar="PATH", help="folder of the data")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the checkpoint to write")
    options = parser.parse_args(arguments)
    if len(set(options.files)) < len(options.files):
        parser.error("a file is named twice: give it one larger share")
    if len(options.shares) != len(options.files) or not all(0 < w < math.inf for w in options.shares):
        parser.error("--shares takes one positive number for each file")
    try:
        _average(options)
    except (InputError, OSError) as error:
        print(f"vit_demo: {error}", file=sys.stderr)
        return 2
    return 0


def _average(options: argparse.Namespace) -> None:
    preset = PRESETS[options.preset]
    model, records = average_checkpoints(dict(zip(options.files, options.shares, strict=True)))
    # The sizes may differ, because kernels and positions are resampled for any.
    if model.config.to_dict() | _sizes(preset.config) != preset.config.to_dict():
        raise CheckpointError(f"{options.files[0].name} does not fit the network of {preset.name}.")
    record: dict[str, Any] = {
        "command": f"python -m vit_demo.training.average {preset.name} {' '.join(p.name for p in options.files)} "
        f"--shares {' '.join(map(str, options.shares))} --data PATH --out {options.out.name}",
        "shares": options.shares,
        # Those of the last checkpoint; "averaged" holds the complete records of all.
        **{key: records[-1][key] for key in ("seed", "epochs", "seconds", "data") if key in records[-1]},
        "averaged": records,
    }
    export_checkpoint(
        options.out,
        model.to(best_device()),
        preset,
        preset.patch_sizes,
        validation=load_split(preset, options.data, "validation"),
        test=load_split(preset, options.data, "test"),
        record=record,
    )


def _sizes(config: ViTConfig) -> dict[str, int]:
    return {"image_size": config.image_size, "patch_size": config.patch_size}


class _Parser(argparse.ArgumentParser):
    """Reports errors in one line, without the usage."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see --help)\n")


if __name__ == "__main__":
    sys.exit(main())
