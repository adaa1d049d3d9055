"""The command line: ``python -m vit_demo presets | explain | evaluate | train | serve``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from vit_demo import render
from vit_demo.accelerator import best_device
from vit_demo.errors import InputError, PresetError
from vit_demo.images import MAX_BYTES
from vit_demo.inference.engine import get_engine
from vit_demo.methods import find_method
from vit_demo.version import __version__
from vit_demo.weights import PRESETS, Preset
from vit_demo.weights.checkpoints import BUNDLED


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command.

    Args:
        arguments: Command-line arguments; None for those of the process.

    Returns:
        The exit code: 0, or 2 for invalid input, with one line on stderr.
    """
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except (InputError, OSError) as error:  # any other exception is a bug, and keeps its traceback
        print(f"vit_demo: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        hint = " Continue with --resume." if options.run is _train else ""
        print(f"vit_demo: stopped.{hint}", file=sys.stderr)
        return 130
    return 0


def _presets(_: argparse.Namespace) -> None:
    for preset in PRESETS.values():
        sizes = ", ".join(f"({p})" if p == preset.default_patch_size else str(p) for p in preset.patch_sizes)
        source = "bundled" if preset.source == "bundled" else preset.repo
        print(f"{preset.name:16} {preset.num_parameters:>10,} parameters  patch {sizes:40} {preset.title:48} {source}")


def _explain(options: argparse.Namespace) -> None:
    find_method(options.method)
    image = sys.stdin.buffer.read(MAX_BYTES + 1) if options.image == "-" else options.image
    result = get_engine().explore(image, options.preset, options.patch_size, options.fit)
    for label, probability in result.top(5):
        print(f"{label:20} {100 * probability:5.1f} %")
    values = result.heatmap(options.method, options.label)
    options.out.mkdir(parents=True, exist_ok=True)
    stem = "image" if options.image == "-" else Path(options.image).stem
    for name, picture in {
        "input": result.image,
        options.method: result.overlay(values),
        "heads": render.contact_sheet(result.image, result.attention_maps()),
    }.items():
        path = options.out / f"{stem}-{name}.png"
        picture.save(path)
        print(path)


def _evaluate(options: argparse.Namespace) -> None:
    from vit_demo.training.evaluate import evaluate_outliers, evaluate_preset
    from vit_demo.training.report import format_report, make_report, plot_predictions

    preset, device = _bundled_preset(options.preset), best_device()
    sizes = preset.patch_sizes if options.patch_size is None else (preset.check_patch_size(options.patch_size),)
    results = evaluate_preset(preset, options.data, options.weights, sizes, device)
    outliers = evaluate_outliers(preset, options.weights, sizes, device, options.data)
    patch_size = preset.default_patch_size if preset.default_patch_size in sizes else sizes[0]
    if options.plot:
        for name, predictions in results.items():
            path = options.plot / f"{preset.name}-{name}-{patch_size}.png"
            plot_predictions(preset, name, patch_size, predictions[patch_size], path)
    report = make_report(preset, results, outliers, patch_size)
    print(json.dumps(report) if options.json else format_report(preset, report))


def _train(options: argparse.Namespace) -> None:
    from vit_demo.training.run import train_preset

    paths = train_preset(
        _bundled_preset(options.preset),
        options.data,
        options.out,
        device=best_device(),
        seed=options.seed,
        epochs=options.epochs,
        learning_rate=options.learning_rate,
        resume=options.resume,
        start=options.start,
    )
    print("\n".join(f"wrote {path}" for path in paths))


def _bundled_preset(name: str) -> Preset:
    """A preset with a training recipe.

    Raises:
        PresetError: If the preset is not bundled.
    """
    preset = PRESETS.get(name)
    if preset is None or preset.source != "bundled":
        known = ", ".join(p.name for p in PRESETS.values() if p.source == "bundled")
        raise PresetError(f"Only bundled presets can be trained and evaluated, not {name}: choose one of {known}.")
    return preset


def _serve(options: argparse.Namespace) -> None:
    from vit_demo.web import launch

    launch(options.host, options.port)


class _Parser(argparse.ArgumentParser):
    """Prints errors on one line, without the usage."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see --help)\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="vit_demo", description="See a Vision Transformer think.")
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(required=True, metavar="command")

    command = commands.add_parser("presets", help="list the models")
    command.set_defaults(run=_presets)

    command = commands.add_parser("explain", help="classify a picture and draw its heatmaps")
    command.add_argument("image", metavar="IMAGE", help="a picture file, or - for standard input")
    command.add_argument(
        "--preset", default="photos-tiny", metavar="P",
        help="a name from `presets`, a repository of the Hub as org/name, or a folder (%(default)s)",
    )  # fmt: skip
    command.add_argument("--patch-size", type=int, metavar="N", help="in pixels (the preset's default)")
    command.add_argument(
        "--method", default="rollout", metavar="M", help="which map to draw (%(default)s); an unknown one lists all"
    )
    command.add_argument(
        "--label", metavar="CLASS", help="class to explain, for methods that depend on it (the predicted class)"
    )
    command.add_argument(
        "--fit", choices=("crop", "squash", "keep"), default="crop", help="how a photo becomes the input (%(default)s)"
    )
    command.add_argument("--out", type=Path, default=Path("out"), metavar="DIR", help="folder for the pictures (out)")
    command.set_defaults(run=_explain)

    command = commands.add_parser("evaluate", help="accuracy, calibration and rejection rates on test data")
    command.add_argument("preset", metavar="PRESET")
    command.add_argument("--data", type=Path, required=True, metavar="PATH", help="folder of the data")
    command.add_argument("--patch-size", type=int, metavar="N", help="in pixels (all sizes of the preset)")
    command.add_argument("--weights", type=Path, default=BUNDLED, metavar="DIR", help="folder of the checkpoints")
    command.add_argument(
        "--plot", type=Path, nargs="?", const=Path("out"), metavar="DIR",
        help="also plot confusion matrices and reliability diagrams into a folder (out)",
    )  # fmt: skip
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(run=_evaluate)

    command = commands.add_parser("train", help="train a preset from scratch")
    command.add_argument("preset", metavar="PRESET")
    command.add_argument("--data", type=Path, required=True, metavar="PATH", help="folder of the data")
    command.add_argument("--out", type=Path, default=Path("runs"), metavar="DIR", help="output folder (runs)")
    command.add_argument("--resume", action="store_true", help="continue an interrupted run in the output folder")
    command.add_argument("--start", type=Path, metavar="FILE", help="initial weights (random)")
    command.add_argument("--epochs", type=int, metavar="N", help="number of epochs (the recipe's)")
    command.add_argument("--learning-rate", type=float, metavar="R", help="peak learning rate (the recipe's)")
    command.add_argument("--seed", type=int, default=0, metavar="N", help="seed of all random numbers (%(default)s)")
    command.set_defaults(run=_train)

    command = commands.add_parser("serve", help="serve the page")
    command.add_argument("--host", help="address to listen on ($GRADIO_SERVER_NAME, or 127.0.0.1)")
    command.add_argument("--port", type=int, help="port ($GRADIO_SERVER_PORT, or 7860 or the next free one)")
    command.set_defaults(run=_serve)
    return parser
