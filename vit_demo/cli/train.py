"""``train``: a small network of digits, from random weights; those of the presets are trained by ``recipes``."""

import argparse
from pathlib import Path

from vit_demo.cli.output import print_lines
from vit_demo.cli.parser import Commands, add_command


def add(commands: Commands) -> None:
    """Adds the command."""
    description = "train a small network from 5,000 digits that are here (presets: python -m recipes train, in a clone)"
    command = add_command(commands, "train", run, description, ["", "--seconds 10 --out runs"])
    command.add_argument("--quick", action="store_true", help=argparse.SUPPRESS)  # once the other way to train
    command.add_argument("--seconds", type=float, default=30.0, help="on one core (default: %(default)s)")
    command.add_argument("--out", type=Path, default=Path("runs"), metavar="DIR", help="output folder (default: runs)")
    command.add_argument(
        "--seed", type=int, default=0, metavar="N", help="seed of all random numbers (default: %(default)s)"
    )


def run(options: argparse.Namespace) -> None:
    """Trains the network, and prints its accuracy and the path of its file."""
    from vit_demo.training.small import NUM_TEST, train_small
    from vit_demo.weights.digit_folders import save_digits

    model, history = train_small(seconds=options.seconds, seed=options.seed)
    path = save_digits(options.out / "quick", model, history)
    print_lines(
        f"{100 * history.accuracy[-1][1]:.1f} % of {NUM_TEST:,} other digits after {history.steps} steps",
        f"wrote {path}; explain pictures with it by --preset {path.parent}",
    )
