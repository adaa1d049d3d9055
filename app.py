"""Opens the page: ``python app.py``. Hugging Face Spaces runs this file as it is."""

import contextlib
import sys

with contextlib.suppress(ImportError):
    import spaces  # noqa: F401  (only on a Space; must come before anything that touches CUDA)

from vit_demo.cli import main

if __name__ == "__main__":
    sys.exit(main(["serve"]))
