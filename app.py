"""Serves the page: ``python app.py``. Hugging Face Spaces runs this file."""

import contextlib
import sys

with contextlib.suppress(ImportError):
    import spaces  # noqa: F401  (only on a Space; must be imported before anything that initializes CUDA)

from vit_demo.cli import main

if __name__ == "__main__":
    sys.exit(main(["serve"]))
