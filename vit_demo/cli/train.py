"""``train``: a bundled preset, from random weights or those of a folder."""

import argparse
from pathlib import Path

from vit_demo.cli.output import print_lines
from vit_demo.cli.parser import Commands, add_command
from vit_demo.errors import InputError, PresetError
from vit_demo.weights import PRESETS, Preset


def add(commands: Commands) -> None:
    """Adds the command."""
    examples = ["digits-tiny --data PATH", "digits-tiny --data PATH --out runs --resume", "--quick --seconds 10"]
    command = add_command(commands, "train", run, "train a bundled preset, or a small network of digits", examples)
    command.add_argument("preset", nargs="?", metavar="PRESET", help="a bundled preset")
    command.add_argument("--data", type=Path, metavar="PATH", help="folder of the data, for a preset")
    command.add_argument(
        "--quick", action="store_true", help="train a small network of digits from 5,000 digits that are here"
    )
    command.add_argument("--seconds", type=float, default=30.0, help="for --quick, on one core (default: %(default)s)")
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
    if options.quick:
        train_quick(options)
        return
    if options.preset is None or options.data is None:
        raise InputError("Name a preset and the folder of its data with --data, or choose --quick.")
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


def train_quick(options: argparse.Namespace) -> None:
    """Trains a small network, and prints its accuracy and the path of its file."""
    if options.preset is not None or options.data is not None:
        raise InputError("--quick trains a network of its own on digits that are here: leave PRESET and --data out.")
    from vit_demo.training.small import NUM_TEST, train_small
    from vit_demo.weights.trained import save_digits

    model, history = train_small(seconds=options.seconds, seed=options.seed)
    path = save_digits(options.out / "quick", model, history)
    print_lines(
        f"{100 * history.accuracy[-1][1]:.1f} % of {NUM_TEST:,} other digits after {history.steps} steps",
        f"wrote {path}; explain pictures with it by --preset {path.parent}",
    )


def bundled_preset(name: str) -> Preset:
    """A preset with a training recipe; ``PresetError`` if it is not bundled."""
    preset = PRESETS.get(name)
    if preset is None or preset.source != "bundled":
        bundled = ", ".join(p.name for p in PRESETS.values() if p.source == "bundled")
        raise PresetError(f"Only bundled presets can be trained and evaluated, not {name}: choose from {bundled}.")
    return preset
