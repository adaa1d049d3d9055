"""One network from several rounds of its training: the weighted mean of their weights.

Further rounds teach new photos and let a little of the old ones slip; a mean of the rounds keeps more of both (WiSE-FT;
Wortsman et al., 2021, https://arxiv.org/abs/2109.01903). ``python -m vit_demo.training.average --help``.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import torch

from vit_demo.accelerator import best_device
from vit_demo.errors import CheckpointError
from vit_demo.model import ViT
from vit_demo.training.run import cool, load_part
from vit_demo.training.scoring import score
from vit_demo.weights import PRESETS
from vit_demo.weights.checkpoints import load_checkpoint, save_checkpoint


def average(files: dict[Path, float]) -> tuple[ViT, list[dict[str, Any]]]:
    """The mean of some checkpoints of one network, and how each of them was made.

    Args:
        files: The share of each, above 0; they need not sum to 1.

    Returns:
        The network, its logits as warm as if no file had been cooled, and the files' records.

    Raises:
        CheckpointError: If a file cannot be read, or they hold different networks.
    """
    found = [load_checkpoint(path) for path in files]
    model = found[0][0]
    for path, (other, _) in zip(files, found, strict=True):
        if other.config != model.config:
            raise CheckpointError(f"{path.name} holds another network than the first file: average rounds of one.")
    mean = {name: torch.zeros_like(tensor) for name, tensor in model.state_dict().items()}
    for share, (other, record) in zip(files.values(), found, strict=True):
        for name, tensor in other.state_dict().items():
            warm = record.get("temperature", 1.0) if name.startswith("head.") else 1.0
            mean[name] += share / sum(files.values()) * warm * tensor
    model.load_state_dict(mean)
    return model, [record for _, record in found]


def main(arguments: list[str] | None = None) -> None:
    """Averages, cools by the validation images, scores on the test part, and writes the file."""
    parser = argparse.ArgumentParser(description="Average rounds of a training.")
    parser.add_argument(
        "preset", choices=[name for name, preset in PRESETS.items() if preset.flexible and preset.source == "bundled"]
    )
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--shares", nargs="+", type=float, required=True, help="of each file, in their order")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True, help="the file to write")
    options = parser.parse_args(arguments)
    if len(options.shares) != len(options.files) or min(options.shares) <= 0:
        parser.error("name a share above 0 for each file")
    preset, device = PRESETS[options.preset], best_device()
    model, records = average(dict(zip(options.files, options.shares, strict=True)))
    validation = load_part(preset, options.data, "validation")
    scores = {p: score(model.to(device), validation, preset, p) for p in preset.patch_sizes}
    record: dict[str, Any] = {
        "command": f"python -m vit_demo.training.average {preset.name} {' '.join(p.name for p in options.files)} "
        f"--shares {' '.join(map(str, options.shares))} --data PATH --out {options.out.name}",
        "shares": options.shares,
        # Of the last file; what the others were made with stands under "averaged".
        **{key: records[-1][key] for key in ("seed", "epochs", "seconds", "data") if key in records[-1]},
        "temperature": cool(model, list(scores.values())),
        "validation_accuracy": {str(p): found.accuracy for p, found in scores.items()},
    }
    model.half().float()  # what is tested is what is stored
    test = load_part(preset, options.data, "test")
    record["test_accuracy"] = {str(p): score(model, test, preset, p).accuracy for p in preset.patch_sizes}
    record["averaged"] = records
    save_checkpoint(options.out, model, record)


if __name__ == "__main__":
    main()
