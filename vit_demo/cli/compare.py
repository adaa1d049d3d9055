"""``compare``: one picture under several presets, patch sizes and methods, as a table and one sheet of pictures."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from vit_demo.cli import output, parser
from vit_demo.cli.pictures import find_picture
from vit_demo.errors import PresetError
from vit_demo.scores import as_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from vit_demo.inference.exploration import Exploration
    from vit_demo.methods import Method
    from vit_demo.weights import Preset

UNIT = "times the mean"  # values of different methods and patch sizes have no other unit in common


def add(commands: parser.Commands) -> None:
    """Adds the command."""
    examples = [
        "seven.png",
        "seven.png --preset digits-small,digits-tiny --patch-size 4,7",
        "photo.jpg --patch-size 12 --method attention,rollout,relevance --label lion --out out",
    ]
    description = "explain one picture under several presets, patch sizes and methods"
    command = parser.add_command(commands, "compare", run, description, examples)
    parser.add_one_picture(command)
    parser.add_combinations(command)
    parser.add_picture_options(command)


def run(options: argparse.Namespace) -> None:
    """Compares, prints the table or JSON, and writes the sheet of pictures."""
    picture = find_picture(options.image, "compare")
    from vit_demo.images import read_image
    from vit_demo.inference.explainer import Explainer
    from vit_demo.inference.inputs import default_preset
    from vit_demo.weights import find_preset

    image = read_image(picture.read())
    chosen = options.preset or [default_preset(image)]
    presets = {name: find_preset(name) for name in chosen}
    methods = parser.chosen_methods(options, has_classes=all(preset.labels for preset in presets.values()))
    combinations = [(name, size) for name in presets for size in patch_sizes(presets, name, options.patch_size)]
    results: list[Exploration] = []
    maps: list[list[NDArray[np.float32]]] = []
    with output.progress_bar(len(combinations) * len(methods)) as bar:
        for name, size in combinations:
            result = Explainer(name, patch_size=size, device=options.device, fit=options.fit)(image)
            first = len(results) * len(methods)
            results.append(result)
            maps.append([])
            for method in methods:
                progress = output.map_progress(bar, f"{name}, {size} px", first + len(maps[-1]))
                label, against = parser.classes(options, method)
                maps[-1].append(result.heatmap(method.name, label, progress, against=against))
    path = options.out / f"{picture.stem}-compare.png"
    output.write_picture(path, _sheet(results, methods, maps))
    if options.json:
        entries = []
        for result, values in zip(results, maps, strict=True):
            pairs = zip(methods, values, strict=True)
            named = {
                method.name: {"unit": method.unit, "values": output.json_values(values)} for method, values in pairs
            }
            entries.append({**output.prediction_json(result), "maps": named})
        output.print_lines(json.dumps(entries))
    else:
        output.print_lines(*_table(results, methods, maps).split("\n"))
    output.print_lines(str(path), file=sys.stderr if options.json else sys.stdout)


def patch_sizes(presets: dict[str, Preset], name: str, chosen: list[int] | None) -> list[int]:
    """The patch sizes of one of the presets; ``PresetError`` if it offers none of them, or no preset offers one."""
    preset = presets[name]
    if chosen is None:
        return list(preset.patch_sizes) if len(presets) == 1 else [preset.default_patch_size]
    for size in chosen:
        if not any(size in other.patch_sizes for other in presets.values()):
            preset.check_patch_size(size)
    offered = [size for size in dict.fromkeys(chosen) if size in preset.patch_sizes]
    if not offered:
        sizes = ", ".join(map(str, preset.patch_sizes))
        raise PresetError(f"{name} has none of these patch sizes: choose from {sizes}.")
    return offered


def _relative(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """A map as multiples of the mean of its values, negative ones counted as 0."""
    mean = values.clip(0).mean()
    return values / mean if mean > 0 else values


def _peak(values: NDArray[np.float32]) -> str:
    """The greatest value and its patch."""
    row, col = divmod(int(values.argmax()), values.shape[1])
    return f"{float(_relative(values).max()):.1f} x mean at ({row}, {col})"


def _prediction(result: Exploration) -> str:
    scores = result.preset.scores
    return " ".join(f"{label} {as_text(score, scores)}" for label, score in result.top(1)) or "no classes"


def _table(results: list[Exploration], methods: list[Method], maps: list[list[NDArray[np.float32]]]) -> str:
    """Aligned columns: the model, its prediction, and where each map is greatest."""
    lines = [["preset", "patch", "grid", "prediction", *(method.name for method in methods)]]
    for result, values in zip(results, maps, strict=True):
        grid = f"{result.grid[0]} x {result.grid[1]}"
        cells = [result.preset.name, f"{result.patch_size} px", grid, _prediction(result)]
        lines.append([*cells, *map(_peak, values)])
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def _sheet(results: list[Exploration], methods: list[Method], maps: list[list[NDArray[np.float32]]]) -> Any:
    from vit_demo import render

    rows = [
        render.ComparisonRow(
            lines=(result.preset.name, f"patches of {result.patch_size} px", _prediction(result)),
            image=result.image,
            maps=[_relative(heatmap) for heatmap in values],
            captions=[_peak(heatmap) for heatmap in values],
        )
        for result, values in zip(results, maps, strict=True)
    ]
    return render.comparison_sheet([method.title for method in methods], rows, UNIT)
