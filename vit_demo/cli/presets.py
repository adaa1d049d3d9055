"""``presets``: the table of models."""

import argparse

from vit_demo.cli.output import print_lines
from vit_demo.cli.parser import Commands, add_command
from vit_demo.weights import PRESETS


def add(commands: Commands) -> None:
    """Adds the command."""
    add_command(commands, "presets", run, "list the models", [""])


def run(_: argparse.Namespace) -> None:
    """Prints one line for each preset, its default patch size in parentheses."""
    for preset in PRESETS.values():
        sizes = ", ".join(f"({p})" if p == preset.default_patch_size else str(p) for p in preset.patch_sizes)
        source = "bundled" if preset.is_bundled else preset.repo
        print_lines(
            f"{preset.name:16} {preset.num_parameters:>10,} parameters  patch {sizes:40} {preset.title:48} {source}"
        )
