"""``train``: a bundled preset, from random weights or those of a folder."""

import argparse
from pathlib import Path

from vit_demo.cli.output import print_lines
from vit_demo.cli.parser import Commands, add_command
from vit_demo.errors import PresetError
from vit_demo.weights import PRESETS, Preset


def add(commands: Commands) -> None:
    """Adds the command."""
    examples = ["digits-tiny --data PATH", "digits-tiny --data PATH --out runs --resume"]
    command = add_command(commands, "train", run, "train a bundled preset", examples)
    command.add_argument("preset", metavar="PRESET", help="a bundled preset")
    command.add_argument("--data", type=Path, required=True, metavar="PATH", help="folder of the data")
    command.add_argument("--out", type=Path, default=Path("runs"), metavar="DIR", help="output folder (default: runs)")
    command.add_argument("--start", type=Path, metavar="DIR", help="start from the checkpoints in a folder")
    command.add_argument("--resume", action="store_true", help="continue an interrupted run in the output folder")
    command.add_argument("--epochs", type=int, metavar="N", help="number of epochs (default: the recipe's)")
    command.add_argument(
        "--seed", type=int, default=0, metavar="N", help="seed of all random numbers (default: %(default)s)"
    )
    command.set_defaults(when_stopped=" Continue with --resume.")


def run(options: argparse.Namespace) -> None:
    """Trains, and prints the paths of the checkpoints."""
    from vit_demo.accelerator import best_device
    from vit_demo.training.run import train_preset

    paths = train_preset(
        bundled_preset(options.preset),
        options.data,
        options.out,
        device=best_device(),
        seed=options.seed,
        epochs=options.epochs,
        resume=options.resume,
        start=options.start,
    )
    print_lines(*(f"wrote {path}" for path in paths))


def bundled_preset(name: str) -> Preset:
    """A preset with a training recipe; ``PresetError`` if it is not bundled."""
    preset = PRESETS.get(name)
    if preset is None or preset.source != "bundled":
        bundled = ", ".join(p.name for p in PRESETS.values() if p.source == "bundled")
        raise PresetError(f"Only bundled presets can be trained and evaluated, not {name}: choose from {bundled}.")
    return preset
