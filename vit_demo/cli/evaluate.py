"""``evaluate``: accuracy, calibration and rejection rates of a bundled preset."""

import argparse
import json
from pathlib import Path

from vit_demo.cli.output import make_folder, print_lines
from vit_demo.cli.parser import Commands, add_command
from vit_demo.cli.train import bundled_preset
from vit_demo.resources import resource_folder


def add(commands: Commands) -> None:
    """Adds the command."""
    examples = [
        "digits-tiny --data PATH",
        "photos-tiny --data PATH --patch-size 12 --json",
        "digits-tiny --data PATH --plot",
    ]
    description = "accuracy, calibration and rejection rates on test data"
    command = add_command(commands, "evaluate", run, description, examples)
    command.add_argument("preset", metavar="PRESET", help="a bundled preset")
    command.add_argument("--data", type=Path, required=True, metavar="PATH", help="folder of the data")
    command.add_argument("--patch-size", type=int, metavar="N", help="in pixels (default: all sizes of the preset)")
    command.add_argument(
        "--weights",
        type=Path,
        default=resource_folder("checkpoints"),
        metavar="DIR",
        help="folder of the checkpoints (default: the bundled ones)",
    )
    command.add_argument(
        "--plot", type=Path, nargs="?", const=Path("out"), metavar="DIR",
        help="also plot confusion matrices and reliability diagrams into a folder (default: out)",
    )  # fmt: skip
    command.add_argument("--json", action="store_true", help="print JSON")


def run(options: argparse.Namespace) -> None:
    """Evaluates, and prints the report."""
    from vit_demo.accelerator import best_device
    from vit_demo.training.datasets import labelled_sets, outlier_sets
    from vit_demo.training.evaluate import evaluate, format_report, make_report, plot_predictions

    preset, device = bundled_preset(options.preset), best_device()
    sizes = preset.patch_sizes if options.patch_size is None else (preset.check_patch_size(options.patch_size),)
    if options.plot:
        make_folder(options.plot)
    results = evaluate(preset, labelled_sets(preset, options.data), options.weights, sizes, device)
    outliers = evaluate(preset, outlier_sets(preset, options.data), options.weights, sizes, device)
    patch_size = preset.default_patch_size if preset.default_patch_size in sizes else sizes[0]
    if options.plot:
        for name, predictions in results.items():
            path = options.plot / f"{preset.name}-{name}-{patch_size}.png"
            plot_predictions(preset, name, patch_size, predictions[patch_size], path)
    report = make_report(preset, results, outliers, patch_size)
    print_lines(*(json.dumps(report) if options.json else format_report(preset, report)).split("\n"))
