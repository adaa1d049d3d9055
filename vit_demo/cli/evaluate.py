"""``evaluate``: a bundled preset on its test data, or any model on a folder of labelled pictures."""

import argparse
import json
from pathlib import Path

from vit_demo.cli.output import print_lines, progress_bar
from vit_demo.cli.parser import Commands, add_command, add_device
from vit_demo.errors import InputError


def add(commands: Commands) -> None:
    """Adds the command."""
    examples = [
        "digits-tiny --data PATH",
        "photos-tiny --data PATH --patch-size 12 --json",
        "timm/vit_tiny_patch16_224.augreg_in21k_ft_in1k --pictures photos/",
    ]
    description = "accuracy and calibration of a bundled preset on test data, or of any model on labelled pictures"
    command = add_command(commands, "evaluate", run, description, examples)
    command.add_argument(
        "preset", metavar="MODEL", help="a bundled preset; with --pictures any preset, repository or folder"
    )
    source = command.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "--data", type=Path, metavar="PATH", help="in a clone: folder of the data, as docs/training.md lists them"
    )
    source.add_argument(
        "--pictures", type=Path, metavar="DIR",
        help="a folder with a subfolder of pictures for each class, named by its label, number or WordNet id",
    )  # fmt: skip
    command.add_argument(
        "--patch-size", type=int, metavar="N",
        help="in pixels (default: all sizes of the preset; with --pictures its default)",
    )  # fmt: skip
    add_device(command)
    command.add_argument("--json", action="store_true", help="print JSON")


def run(options: argparse.Namespace) -> None:
    """Evaluates, and prints the report."""
    report = _on_pictures(options) if options.pictures else _on_data(options)
    print_lines(*report.split("\n"))


def _on_data(options: argparse.Namespace) -> str:
    try:
        from recipes.evaluate import report_preset
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "recipes":
            raise
        raise InputError("What reads test data is not installed: run this in a clone of the repository.") from error
    return report_preset(
        options.preset, options.data, patch_size=options.patch_size, device=options.device, as_json=options.json
    )


def _on_pictures(options: argparse.Namespace) -> str:
    from vit_demo.inference.explainer import Explainer
    from vit_demo.training.labelled_folder import evaluate_pictures, format_pictures_report, labelled_pictures
    from vit_demo.weights import find_preset

    explainer = Explainer(options.preset, patch_size=options.patch_size, device=options.device)
    labels = find_preset(options.preset).labels
    if not labels:
        raise InputError(f"{options.preset} has no classes: choose a model with a classifier head.")
    pictures = labelled_pictures(options.pictures, labels)
    with progress_bar(len(pictures)) as bar:
        report = evaluate_pictures(explainer, pictures, bar.update)
    return json.dumps(report) if options.json else format_pictures_report(report)
