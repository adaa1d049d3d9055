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
from vit_demo.methods import METHODS
from vit_demo.version import __version__
from vit_demo.weights import PRESETS, Preset
from vit_demo.weights.checkpoints import BUNDLED


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command.

    Args:
        arguments: Instead of the process's own.

    Returns:
        0, or 2 for bad input, said in one line on stderr.
    """
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except (InputError, OSError) as error:  # anything else is a bug, and keeps its traceback
        print(f"vit_demo: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        hint = " Train on with --resume." if options.run is _train else ""
        print(f"vit_demo: stopped.{hint}", file=sys.stderr)
        return 130
    return 0


def _presets(_: argparse.Namespace) -> None:
    for preset in PRESETS.values():
        sizes = ", ".join(f"({p})" if p == preset.default_patch_size else str(p) for p in preset.patch_sizes)
        source = "bundled" if preset.source == "bundled" else preset.repo
        print(f"{preset.name:16} {preset.num_parameters:>10,} parameters  patch {sizes:40} {preset.title:48} {source}")


def _explain(options: argparse.Namespace) -> None:
    image = sys.stdin.buffer.read(MAX_BYTES + 1) if options.image == "-" else options.image
    result = get_engine().explore(image, options.preset, options.patch_size, options.fit)
    for label, probability in result.top(5):
        print(f"{label:20} {100 * probability:5.1f} %")
    values = result.heatmap(options.method, options.label)
    options.out.mkdir(parents=True, exist_ok=True)
    stem = "image" if options.image == "-" else Path(options.image).stem
    for name, picture in {
        "seen": result.image,
        options.method: result.overlay(values),
        "heads": render.contact_sheet(result.image, result.attention_maps()),
    }.items():
        path = options.out / f"{stem}-{name}.png"
        picture.save(path)
        print(path)


def _evaluate(options: argparse.Namespace) -> None:
    from vit_demo.training import evaluate

    preset = _trained_here(options.preset)
    sizes = preset.patch_sizes if options.patch_size is None else (preset.check_patch_size(options.patch_size),)
    found = evaluate.evaluate_preset(preset, options.data, options.weights, sizes, best_device())
    doubts = evaluate.doubts(preset, options.weights, sizes, best_device(), options.data)
    shares = evaluate.confidence_shares(preset, found)
    accuracy = {name: {p: score.accuracy for p, score in scores.items()} for name, scores in found.items()}
    error = {name: {p: score.calibration_error() for p, score in scores.items()} for name, scores in found.items()}
    shown = preset.default_patch_size if preset.default_patch_size in sizes else sizes[0]
    if options.plot:
        for name, scores in found.items():
            evaluate.plot(preset, name, shown, scores[shown], options.plot / f"{preset.name}-{name}-{shown}.png")
    if options.json:
        report = {"preset": preset.name, "accuracy": accuracy, "calibration_error": error, "not_sure": doubts}
        report |= {name.replace(" ", "_"): table for name, table in shares.items()}
        confusion = {name: scores[shown].confusion().tolist() for name, scores in found.items()}
        print(json.dumps(report | {"confusion": {"patch_size": shown} | confusion}))
        return
    tables = {"right answers": accuracy, "calibration error": error} | shares | {"not sure of": doubts}
    width = max(24, 4 + max(len(name) for table in tables.values() for name in table))
    for title, table in tables.items():
        print(f"{title + ', %':{width}}" + "".join(f"patch {p:<3}" for p in sizes))
        for name, values in table.items():
            print(f"  {name:{width - 4}}" + "".join(f"{100 * values[p]:8.2f} " for p in sizes))
        print()
    name, scores = next(iter(found.items()))
    print(f"mistakes on {name} at patch {shown}")
    _print_confusion(preset.labels, scores[shown].confusion().tolist())


def _print_confusion(labels: tuple[str, ...], table: list[list[int]]) -> None:
    """The whole matrix of a few classes, one row a class; of many classes the twelve most frequent mistakes."""
    if len(labels) <= 12:
        print("  truth  answer" + "".join(f"{label:>6}" for label in labels))
        for label, row in zip(labels, table, strict=True):
            print(f"  {label:13}" + "".join(f"{count or '.':>6}" for count in row))
        return
    pairs = [(n, labels[i], labels[j]) for i, row in enumerate(table) for j, n in enumerate(row) if i != j and n]
    for count, truth, answer in sorted(pairs, reverse=True)[:12]:
        print(f"  {count:4} times a {truth} was called {answer}")


def _train(options: argparse.Namespace) -> None:
    from vit_demo.training.run import train_preset

    paths = train_preset(
        _trained_here(options.preset),
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


def _trained_here(name: str) -> Preset:
    """A preset that this package has data and a recipe for.

    Raises:
        PresetError: If it is somebody else's.
    """
    preset = PRESETS.get(name)
    if preset is None or preset.source != "bundled":
        known = ", ".join(p.name for p in PRESETS.values() if p.source == "bundled")
        raise PresetError(f"Only bundled presets are trained and evaluated here, not {name}: choose one of {known}.")
    return preset


def _serve(options: argparse.Namespace) -> None:
    from vit_demo.web import launch

    launch(options.host, options.port)


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, without the usage."""

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
    command.add_argument("--method", choices=METHODS, default="rollout", help="which map to draw (%(default)s)")
    command.add_argument(
        "--label", metavar="CLASS", help="whose map it is, where it depends on the class (the predicted)"
    )
    command.add_argument("--fit", choices=("crop", "squash", "keep"), default="crop", help="how a photo is fitted")
    command.add_argument("--out", type=Path, default=Path("out"), metavar="DIR", help="folder for the pictures")
    command.set_defaults(run=_explain)

    command = commands.add_parser("evaluate", help="accuracy, confusion and calibration on the test split")
    command.add_argument("preset", metavar="PRESET")
    command.add_argument("--data", type=Path, required=True, metavar="PATH", help="folder that holds the data")
    command.add_argument("--patch-size", type=int, metavar="N", help="only this one")
    command.add_argument("--weights", type=Path, default=BUNDLED, metavar="DIR", help="folder of the checkpoints")
    command.add_argument(
        "--plot", type=Path, nargs="?", const=Path("out"), metavar="DIR",
        help="draw confusion and calibration into a folder (out)",
    )  # fmt: skip
    command.add_argument("--json", action="store_true", help="for programs")
    command.set_defaults(run=_evaluate)

    command = commands.add_parser("train", help="train a preset from scratch")
    command.add_argument("preset", metavar="PRESET")
    command.add_argument("--data", type=Path, required=True, metavar="PATH", help="folder that holds the data")
    command.add_argument("--out", type=Path, default=Path("runs"), metavar="DIR", help="folder for what is written")
    command.add_argument("--resume", action="store_true", help="go on where the last run in DIR stopped")
    command.add_argument("--start", type=Path, metavar="FILE", help="begin with these weights, not with random ones")
    command.add_argument("--epochs", type=int, metavar="N", help="instead of the recipe's")
    command.add_argument("--learning-rate", type=float, metavar="R", help="instead of the recipe's")
    command.add_argument("--seed", type=int, default=0, metavar="N", help="of everything random (%(default)s)")
    command.set_defaults(run=_train)

    command = commands.add_parser("serve", help="open the page")
    command.add_argument("--host", help="address to listen on ($GRADIO_SERVER_NAME, or this machine only)")
    command.add_argument("--port", type=int, help="($GRADIO_SERVER_PORT, or 7860 or the next one that is free)")
    command.set_defaults(run=_serve)
    return parser
