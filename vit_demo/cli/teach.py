"""``teach``: classes of one's own, from a folder of pictures for each."""

import argparse
import sys
from pathlib import Path

from vit_demo.cli.output import print_lines
from vit_demo.cli.parser import Commands, add_command, add_device, add_fit


def add(commands: Commands) -> None:
    """Adds the command."""
    examples = ["pets/ --model photos-tiny --out pets.safetensors", "symbols/ --model digits-small"]
    description = "teach a network classes of your own, from a folder of pictures for each"
    command = add_command(commands, "teach", run, description, examples)
    command.add_argument("folder", type=Path, metavar="FOLDER", help="holds a folder for each class, named like it")
    command.add_argument("--model", metavar="P", help="a preset, repository or folder (default: by the first picture)")
    command.add_argument("--patch-size", type=int, metavar="N", help="in pixels (default: that of the model)")
    add_fit(command)
    add_device(command)
    command.add_argument(
        "--out", type=Path, default=Path("taught.safetensors"), metavar="FILE", help="(default: %(default)s)"
    )


def run(options: argparse.Namespace) -> bool:
    """Teaches, writes the file, and prints what is right of examples left out; returns whether a picture failed."""
    from vit_demo.teaching.teach import teach
    from vit_demo.training.labelled_folder import labelled_folders

    failed = list[str]()
    taught = teach(
        labelled_folders(options.folder),
        options.model,
        patch_size=options.patch_size,
        device=options.device,
        fit=options.fit,
        on_error=lambda path, error: failed.append(f"vit_demo: {path}: {error}"),
    )
    taught.save(options.out)
    width = max(map(len, taught.labels))
    pairs = zip(taught.labels, taught.confusion, strict=True)
    rows = [f"  {label:{width}} {'  '.join(map(str, row))}" for label, row in pairs]
    print_lines(*failed, file=sys.stderr) if failed else None
    print_lines(
        f"left out one at a time, {taught.confusion.trace()} of {taught.confusion.sum()} pictures are right, "
        f"{taught.confusion.sum() * taught.chance:.0f} by guessing; by class, and by the class predicted:",
        *rows,
        f"wrote {options.out}; explain pictures with it by --model {options.out}",
    )
    return bool(failed)
