"""``evaluate``: a bundled preset on its test data, or any model on a folder of labelled pictures."""

import argparse
import json
from pathlib import Path

from vit_demo.cli.output import make_folder, print_lines, progress_bar
from vit_demo.cli.parser import Commands, add_command, add_device
from vit_demo.cli.pictures import is_picture
from vit_demo.cli.train import bundled_preset
from vit_demo.errors import InputError
from vit_demo.resources import resource_folder


def add(commands: Commands) -> None:
    """Adds the command."""
    examples = [
        "digits-tiny --data PATH",
        "photos-tiny --data PATH --patch-size 12 --json",
        "digits-tiny --data PATH --plot",
        "timm/vit_tiny_patch16_224.augreg_in21k_ft_in1k --pictures photos/",
    ]
    description = "accuracy and calibration of a bundled preset on test data, or of any model on labelled pictures"
    command = add_command(commands, "evaluate", run, description, examples)
    command.add_argument(
        "preset", metavar="MODEL", help="a bundled preset; with --pictures any preset, repository or folder"
    )
    source = command.add_mutually_exclusive_group(required=True)
    source.add_argument("--data", type=Path, metavar="PATH", help="folder of the data, as docs/training.md lists them")
    source.add_argument(
        "--pictures", type=Path, metavar="DIR",
        help="a folder with a subfolder of pictures for each class, named by its label, number or WordNet id",
    )  # fmt: skip
    command.add_argument(
        "--patch-size", type=int, metavar="N",
        help="in pixels (default: all sizes of the preset; with --pictures its default)",
    )  # fmt: skip
    add_device(command)
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
    if options.pictures:
        if options.plot:
            raise InputError("--plot is for the data of a bundled preset: leave it out with --pictures.")
        print_lines(*_on_pictures(options).split("\n"))
        return
    from vit_demo.accelerator import best_device
    from vit_demo.checks import find_device
    from vit_demo.training.datasets import labelled_sets, outlier_sets
    from vit_demo.training.evaluate import evaluate, format_report, make_report, plot_predictions

    preset = bundled_preset(options.preset)
    device = find_device(options.device) if options.device else best_device()
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


def _on_pictures(options: argparse.Namespace) -> str:
    from vit_demo.inference.explainer import Explainer
    from vit_demo.training.labelled_folder import evaluate_pictures, format_pictures_report, labelled_pictures
    from vit_demo.weights import find_preset

    explainer = Explainer(options.preset, patch_size=options.patch_size, device=options.device)
    labels = find_preset(options.preset).labels
    if not labels:
        raise InputError(f"{options.preset} has no classes: choose a model with a classifier head.")
    pictures = labelled_pictures(options.pictures, labels, is_picture)
    with progress_bar(len(pictures)) as bar:
        report = evaluate_pictures(explainer, pictures, bar.update)
    return json.dumps(report) if options.json else format_pictures_report(report)
