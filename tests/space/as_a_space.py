"""Imported by Python at its start (as ``sitecustomize``): hides packages that a Space would not have installed."""

import os
import sys

HIDDEN = frozenset(os.environ.get("HIDDEN_PACKAGES", "").split())


class Hide:
    """An import finder that comes first and finds nothing where others would."""

    def find_spec(self, name, path=None, target=None):
        """Refuses hidden packages as if they were not there."""
        if name.partition(".")[0] in HIDDEN:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Hide())
