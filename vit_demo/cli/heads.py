"""``heads``: what each attention head of a network is worth to an answer, as a table, a picture or JSON."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

from vit_demo.cli import output, parser
from vit_demo.cli.pictures import find_picture
from vit_demo.errors import InputError
from vit_demo.scores import as_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def add(commands: parser.Commands) -> None:
    """Adds the command."""
    examples = [
        "seven.png",
        "photo.jpg --preset vit-s16 --label tabby --against 'tiger cat'",
        "seven.png --without-heads 4.3 --json",
    ]
    command = parser.add_command(commands, "heads", run, "say which attention heads an answer needs", examples)
    parser.add_one_picture(command)
    parser.add_one_model(command)
    command.add_argument("--label", metavar="CLASS", help="class that loses (default: the predicted one)")
    command.add_argument("--against", metavar="CLASS", help="another class: what --label loses against this one")
    parser.add_fit(command)
    parser.add_device(command)
    parser.add_without_heads(command)


def run(options: argparse.Namespace) -> None:
    """Silences each head in turn, prints the table or JSON, and writes the picture."""
    picture = find_picture(options.image, "heads")
    from vit_demo import render
    from vit_demo.inference.explore import explore

    how = {name: getattr(options, name) for name in ("patch_size", "device", "fit", "labels", "template")}
    result = explore(picture.read(), options.preset, **how).without(heads=options.without_heads)
    label = result.labels[result.target(options.label)]
    question = f"{label} rather than {options.against}" if options.against else label
    with output.progress_bar(1) as bar:
        progress = output.map_progress(bar, picture.name, 0)
        tables = {"effects": result.head_effects(label, options.against, progress=progress)}
    try:
        parts = result.contributions(label, options.against)
        tables["contributions"] = parts.heads
    except InputError as error:  # the effects are as true without them
        parts = None
        output.print_lines(f"vit_demo: {error}", file=sys.stderr)
    path = options.out / f"{picture.stem}-head-effects.png"
    output.write_picture(path, render.heads_sheet(tables, f"logit of {question}"))
    if options.json:
        found: dict[str, object] = {name: output.json_values(values) for name, values in tables.items()}
        if parts:
            found |= {"mlps": parts.mlps.tolist(), "tokens": parts.tokens, "bias": parts.bias, "logit": parts.logit}
        about = {"label": label, "against": options.against, "file": str(path)}
        output.print_lines(json.dumps({**output.prediction_json(result), **about, **found}))
        return
    name, score = result.top(1)[0]
    silent = f" without {result.intervention.words}" if result.intervention else ""
    lines = [f"It says {name}, {as_text(score, result.preset.scores)}{silent}."]
    lines += [f"What the logit of {question} loses when one head alone is silent:", *_table(tables["effects"])]
    if parts:
        lines += ["What each adds to it directly, and the MLP of each block:", *_table(parts.heads, parts.mlps)]
        lines.append(f"With the first tokens, {parts.tokens:.2f}, and biases, {parts.bias:.2f}: {parts.logit:.2f}.")
    output.print_lines(*lines, str(path))


def _table(values: NDArray[np.float32], mlps: NDArray[np.float32] | None = None) -> list[str]:
    """A line for each block, a column for each head, the largest marked."""
    heads = [f"head {head}" for head in range(values.shape[1])]
    lines = [" " * 8 + "".join(f"{name:>9}" for name in [*heads, *([] if mlps is None else ["MLP"])])]
    for block, row in enumerate(values):
        cells = [f"{value:.2f}{'*' if value == values.max() else ' '}" for value in row]
        cells += [] if mlps is None else [f"{mlps[block]:.2f} "]
        lines.append(f"block {block:<2}" + "".join(f"{cell:>9}" for cell in cells))
    return [line.rstrip() for line in lines]
