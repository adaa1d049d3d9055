"""Finds a preset by its name: in the table, in memory, in a folder, or on the Hub."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from vit_demo.checks import did_you_mean
from vit_demo.errors import PresetError
from vit_demo.weights.preset import Preset
from vit_demo.weights.presets import PRESETS
from vit_demo.weights.untrusted_text import quote

if TYPE_CHECKING:
    from vit_demo.weights.hub.download import DownloadProgress


def find_preset(
    name: str, progress: DownloadProgress | None = None, *, trusted: bool = True, proved: bool = True
) -> Preset:
    """Returns a preset by its name, or makes one of a folder, a file or a Hub repository (``org/name@revision``).

    A name from a visitor of the page is not ``trusted``: it never stands for a folder, its repository is downloaded
    without a token into a separate cache, and the model must stay within ``limits``. If a repository need not be
    ``proved``, its network is not run; see ``repository.prove``.

    Raises:
        PresetError: If there is no such preset, or the model is not supported.
        CheckpointError: If the repository cannot be downloaded, or its weights cannot be used.
    """
    if isinstance(name, str) and name in PRESETS:
        return PRESETS[name]
    # Imported here, because these take torch, and the table does not.
    from vit_demo.weights.kept_networks import is_trained_name, trained_preset

    if is_trained_name(name):
        return trained_preset(name)
    from vit_demo.weights.hub.repository import custom_preset, is_custom_name
    from vit_demo.weights.taught_heads import ENDING, file_preset

    if isinstance(name, str) and trusted and name.endswith(ENDING) and Path(name).is_file():
        return file_preset(name, find_preset)
    if isinstance(name, str) and is_custom_name(name, trusted=trusted):
        return custom_preset(name, progress, trusted=trusted, proved=proved)
    known = ", ".join(PRESETS)
    other = "a repository of the Hub as org/name" + (", or a folder" if trusted else "")
    raise PresetError(
        f"There is no preset {quote(name)}{did_you_mean(name, PRESETS)}: choose one of {known}, or give {other}."
    )
