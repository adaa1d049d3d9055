"""Writes the API reference with pdoc: ``python -m scripts.reference FOLDER``."""

import sys
from pathlib import Path

import pdoc

import vit_demo

PACKAGES = (
    "vit_demo",
    *(
        f"vit_demo.{name}"
        for name in ("model", "trace", "features", "metrics", "images", "weights", "render", "inference.result")
    ),
)
"""What is documented; ``vit_demo.methods`` comes with ``vit_demo``, whose public names include it."""


def main(folder: Path) -> None:
    """Writes the pages into a folder."""
    for name in vit_demo.__all__:  # pdoc does not see names that are imported on first use
        vars(vit_demo)[name] = getattr(vit_demo, name)
    pdoc.render.configure(docformat="google")
    pdoc.pdoc(*PACKAGES, output_directory=folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
