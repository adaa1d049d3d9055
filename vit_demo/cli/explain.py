"""``explain``: predictions and heatmaps of pictures, as text, pictures, JSON or an HTML report."""

import argparse
import json
import re
import sys
import textwrap
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vit_demo.cli import output, parser
from vit_demo.cli.pictures import Explained, ExplainedMap, Picture, find_pictures
from vit_demo.errors import ImageError, InputError, PresetError
from vit_demo.scores import as_text

if TYPE_CHECKING:
    from vit_demo.inference.exploration import Exploration


def add(commands: parser.Commands) -> None:
    """Adds the command."""
    examples = [
        "photo.jpg",
        "seven.png --patch-size 4 --method rollout,relevance --out out",
        "photos/ --method attention,occlusion --html report.html",
        "seven.png --method attention --block 2 --head 1 --query 3,4",
        "photo.jpg --method occlusion --option window=3 --faithfulness",
        "'photos/**/*.jpg' --json > photos.jsonl",
        "photo.jpg --preset clip-b16 --labels 'a lion, a cat' --method legrad",
        "seven.png --without-heads 2.1,4.3",
        "- --label lion --against 'tabby cat' --method relevance < photo.jpg",
    ]
    command = parser.add_command(commands, "explain", run, "classify pictures and draw their heatmaps", examples)
    command.add_argument(
        "images", nargs="+", metavar="IMAGE", help="a picture file, a folder, a pattern, or - for standard input"
    )
    parser.add_one_model(command)
    parser.add_picture_options(command)
    parser.add_map_options(command)
    parser.add_without_heads(command)
    command.add_argument(
        "--faithfulness", action="store_true", help="test each map: do its strongest patches matter most?"
    )
    command.add_argument(
        "--out", type=Path, metavar="DIR", help="folder for the pictures (default: out; with --json or --html, none)"
    )
    command.add_argument("--json", action="store_true", help="print one JSON object per picture, each on its own line")
    command.add_argument("--html", type=Path, metavar="FILE", help="write one HTML file with everything in it")


def run(options: argparse.Namespace) -> bool:
    """Explains each picture; one that cannot be used is reported; returns whether there was any."""
    pictures = find_pictures(options.images)
    out = options.out or (None if options.json or options.html else Path("out"))
    if out is not None:
        output.make_folder(out)
    from vit_demo.cli.report import Report
    from vit_demo.inference.explainer import Explainer
    from vit_demo.inference.explore import explore

    methods, choices = parser.chosen_maps(options, has_classes=True)
    how = {name: getattr(options, name) for name in ("patch_size", "device", "fit", "labels", "template")}
    explain: Callable[[str | bytes], Exploration] = partial(explore, **how)  # each picture has its own preset
    if options.preset is not None:
        explain = Explainer(options.preset, **how)
    report, classes = Report(), dict[str, tuple[str, ...]]()
    failed, more_to_do = False, out is not None or options.html is not None
    with output.progress_bar(len(pictures) * len(methods)) as bar:
        for number, picture in enumerate(pictures):
            try:
                result = explain(picture.read()).without(heads=options.without_heads)
            except (ImageError, PresetError) as error:
                failed = True
                report_failure(picture, error, options.json, alone=len(pictures) == 1, more_to_do=more_to_do)
                report.add_failure(picture.name, str(error))
                continue
            methods, choices = parser.chosen_maps(options, has_classes=bool(result.labels))
            label = result.labels[result.target(options.label)] if result.labels else None
            maps = list[ExplainedMap]()
            for method, chosen in zip(methods, choices, strict=True):
                progress = output.map_progress(bar, picture.name, number * len(methods) + len(maps))
                named, other = parser.classes(options, method)
                values = result.heatmap(method.name, named, progress, against=other, **chosen)
                test = None
                if options.faithfulness and result.labels:
                    test = result.faithfulness(values, label=named, against=other, progress=progress)
                maps.append(ExplainedMap(method, chosen, values, other, test))
            explained = Explained(picture, result, maps, label)
            with_class = options.label is not None or options.against is not None
            paths = write_pictures(explained, out, options.query, with_class=with_class) if out is not None else []
            if options.json:
                output.print_lines(json.dumps(to_json(explained, paths)), more_to_do=more_to_do)
            else:
                print_text(explained, paths, with_name=len(pictures) > 1)
            classes[result.preset.name] = () if result.preset.takes_words else result.preset.few_labels
            if options.html:
                report.add(explained)
    if not options.json:
        print_classes(classes)
    if options.html:
        report.write(options.html)
        output.print_lines(str(options.html), file=sys.stderr if options.json else sys.stdout)
    return failed


def write_pictures(
    explained: Explained, folder: Path, query: tuple[int, int] | None, *, with_class: bool = False
) -> list[Path]:
    """Writes what the model saw, each map over it, and the attention of the query in every block and head.

    The names of maps say, on demand, for which class they are.
    """
    from vit_demo import render

    result = explained.result
    named = {"input": result.image}
    for shown in explained.maps:
        classes = [explained.label, shown.against] if with_class and shown.method.class_specific else []
        name = "-".join([shown.method.name, *(_file_name(label) for label in classes if label)])
        named[name] = result.overlay(shown.values, method=shown.method.name)
    named["heads"] = render.contact_sheet(result.image, result.attention_maps(query))
    paths = []
    for name, picture in named.items():
        paths.append(folder / f"{explained.picture.stem}-{name}.png")
        output.write_picture(paths[-1], picture)
    return paths


def _file_name(label: str) -> str:
    """A class's name as part of a file's: letters and digits of any script, and hyphens."""
    return re.sub(r"[\W_]+", "-", label).strip("-")[:60] or "class"


def print_text(explained: Explained, paths: list[Path], *, with_name: bool) -> None:
    """Prints the most likely classes, the paths of the pictures, and the model."""
    result = explained.result
    scores = result.preset.scores
    confidence = "" if result.is_confident or not result.labels or scores == "none" else "; low confidence"
    lines = [f"{label:20} {as_text(score, scores):>7}" for label, score in result.top()]
    lines += [f"{shown.method.name}: {shown.verdict}" for shown in explained.maps if shown.test]
    lines += [str(path) for path in paths]
    count = len(result.intervention.heads)
    silent = f", without {count} of its {result.trace.num_blocks * result.trace.num_heads} heads" if count else ""
    lines.append(f"Model: {result.preset.name}, patches of {result.patch_size} px{silent}{confidence}.")
    if with_name:
        lines.insert(0, f"{explained.picture.name}")
        lines.append("")
    output.print_lines(*lines, more_to_do=True)


def print_classes(classes: dict[str, tuple[str, ...]]) -> None:
    """Prints the classes of each model with few, because it takes anything else for one of them."""
    for name, labels in classes.items():
        if labels:
            sentence = f"{name} knows {len(labels)} classes and takes anything else for one of them: "
            output.print_lines(*textwrap.wrap(f"{sentence}{', '.join(labels)}.", 120), more_to_do=True)


def to_json(explained: Explained, paths: list[Path]) -> dict[str, Any]:
    """Everything about a picture as JSON values; a map holds its true values, row by row."""
    result = explained.result
    return {
        "image": explained.picture.name,
        **output.prediction_json(result),
        "is_confident": result.is_confident,
        "without_heads": [list(head) for head in result.intervention.heads],
        "labels": list(result.preset.few_labels),
        "maps": {
            shown.method.name: {
                "unit": shown.method.unit,
                "label": explained.label if shown.method.class_specific else None,
                "against": shown.against,
                "options": shown.options,
                "values": output.json_values(shown.values),
                **({"faithfulness": shown.areas} if shown.test else {}),
            }
            for shown in explained.maps
        },
        "files": [str(path) for path in paths],
    }


def report_failure(picture: Picture, error: InputError, as_json: bool, *, alone: bool, more_to_do: bool) -> None:
    """Prints why a picture could not be used; with ``--json`` in the output, too."""
    where = "" if alone else f"{picture.name}: "
    output.print_lines(f"vit_demo: {where}{error}", file=sys.stderr)
    if as_json:
        output.print_lines(json.dumps({"image": picture.name, "error": str(error)}), more_to_do=more_to_do)
