"""Where a picture can be read again, and the worker pool for work on it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from vit_demo import images
from vit_demo.inference.inputs import Picture
from vit_demo.service.limits import POOLS
from vit_demo.weights import Preset


def pool_of(preset: Preset, *, slow: bool = False) -> str:
    """The worker pool for a model; models that visitors bring have their own."""
    return ("slow" if slow else preset.task) if preset.trusted else "visitors"


@dataclass(frozen=True)
class Source:
    """A picture that can be read again if its result has to be computed again.

    Attributes:
        identity: Equal identities mean equal pictures.
        read: Reads it.
        reference: The name under which its sender can refer to it; empty if there is none.
        is_decoded: Whether a picture file is decoded already; decoding can take seconds. None for any other source.
    """

    identity: Hashable
    read: Callable[[], Picture] = field(compare=False)
    reference: str = field(default="", compare=False)
    is_decoded: Callable[[], bool] | None = field(default=None, compare=False)

    def pool(self, preset: Preset, *, slow: bool = False, live: bool = False) -> str:
        """The worker pool for one pass on this picture, or for many if they are ``slow``.

        Nothing else waits for a file that must be decoded first, nor for passes on what is ``live``.
        """
        if slow or self.is_decoded is None or not preset.trusted:
            pool = pool_of(preset, slow=slow)
        else:
            pool = "photos" if self.is_decoded() else "files"
        return f"live {pool}" if live and f"live {pool}" in POOLS else pool

    @classmethod
    def of(cls, image: images.ImageSource) -> Source:
        """Reads a picture at once; raises ``ImageError``."""
        picture = images.read_image(image)
        digest = hashlib.sha256(picture.tobytes()).digest()
        return cls((picture.size, digest), lambda: picture)
