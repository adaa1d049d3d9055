"""What happens when a person does something: choices in, numbers for the stage out."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import gradio as gr

from vit_demo.errors import EmptySketchError
from vit_demo.inference.engine import Fit, explorer_on
from vit_demo.web.payload import block_payload, empty, payload
from vit_demo.weights import PRESETS, Preset, find_preset
from vit_demo.weights.checkpoints import read_record
from vit_demo.weights.elsewhere import what_to_expect
from vit_demo.weights.preset import Task

EMPTY_PAD = "Draw a digit, 0 to 9, and see how the model reads it."
EMPTY_PHOTO = "Drop, paste or take a photo to see how the model reads it."


def explain(drawing: str | None, photo: str | None, preset: str, patch_size: int, fit: Fit) -> dict[str, Any]:
    """The stage for the drawing or the photo, whichever the preset is made for.

    Raises:
        gr.Error: With one sentence, if the picture cannot be used; the stage then keeps what it shows.
    """
    drawn = find_preset(preset).task == "digits"
    image = drawing if drawn else photo
    if image is None:
        return empty(EMPTY_PAD if drawn else EMPTY_PHOTO)
    try:
        return payload(explorer_on().explore(image, preset, patch_size, fit))
    except EmptySketchError:
        return empty(EMPTY_PAD)
    except ValueError as error:
        raise gr.Error(str(error), print_exception=False) from error


def explain_anyway(drawing: str | None, photo: str | None, preset: str, patch_size: int, fit: Fit) -> dict[str, Any]:
    """Like ``explain``, but a picture that cannot be used is said on the stage, so that other choices still apply."""
    try:
        return explain(drawing, photo, preset, patch_size, fit)
    except gr.Error as error:
        return empty(str(error.message))


def fetching(name: str) -> Iterator[str]:
    """Says how far it is while the weights of a preset are fetched; nothing where they are there already.

    A failure is not said here but by the exploration that follows, which needs the same weights.
    """
    known = PRESETS.get(name)
    if name in explorer_on().loaded or (known and known.source == "bundled"):
        return
    title = known.title if known else name
    said = f"Fetching {title} from the Hub"

    def progress(_: str, done: int, total: int) -> None:
        nonlocal said
        said = f"Fetching {title} from the Hub: {done / 1e6:.0f} of {total / 1e6:.0f} MB"

    def fetch() -> None:
        explorer_on().fetch(find_preset(name, progress), progress)

    with ThreadPoolExecutor(1) as pool:
        fetched = pool.submit(fetch)
        while wait([fetched], timeout=0.5).not_done:
            yield said


def block_trace(key: str, block: int) -> dict[str, str]:
    """Another block's q and k, for a grid too fine to send them all at once.

    Raises:
        ValueError: If the result is no longer remembered, or has no such block.
    """
    result = explorer_on().recall(key)
    if result is None:
        raise ValueError("This result was forgotten: draw or choose again.")
    return block_payload(result, block)


def presets_for(task: Task) -> list[tuple[str, str]]:
    """Choices of the model menu, (title, name)."""
    return [(preset.title, preset.name) for preset in PRESETS.values() if preset.task == task]


def choose_preset(name: str) -> tuple[Any, str, str]:
    """The patch sizes of a preset, and what to say about it and about its default size."""
    preset = find_preset(name)
    size = preset.default_patch_size
    return (
        gr.Radio(choices=[str(p) for p in preset.patch_sizes], value=str(size), interactive=True),
        about_model(name),
        about_size(name, size),
    )


def about_model(name: str) -> str:
    """Size and kind of a model in one line."""
    preset = find_preset(name)
    count = preset.num_parameters
    weights = f"{count / 1e6:.1f} M" if count >= 1e5 else f"{count:,}"
    return f"{weights} weights · {preset.num_blocks} blocks · {preset.num_heads} heads. {preset.note}"


def about_size(name: str, patch_size: int) -> str:
    """What a patch size means: how many tokens, and how often the model is right with it."""
    preset = find_preset(name)
    side = preset.image_size // patch_size
    prefix = preset.config.num_prefix
    extra = [part for part in ("class token" * preset.config.class_token, _registers(preset)) if part]
    text = " + ".join([f"{side} × {side} patches", *extra]) + f" = **{side * side + prefix} tokens**."
    text += f" {what_to_expect(preset, patch_size)}".rstrip()
    accuracy = read_record(preset, patch_size).get("test_accuracy", {}).get(str(patch_size))
    if accuracy is not None:
        what = "MNIST's test digits" if preset.task == "digits" else "its test photos"
        text += f" Right on {100 * accuracy:.1f} % of {what}."
    return text


def _registers(preset: Preset) -> str:
    count = preset.config.num_registers
    return f"{count} registers" if count else ""
