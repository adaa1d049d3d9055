"""Pictures that can be read again, and the worker pools for work on them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from vit_demo import images
from vit_demo.inference.inputs import Picture
from vit_demo.service.job import Turn
from vit_demo.service.job_limits import POOLS, QUICK_SECONDS, job_bytes
from vit_demo.weights import Preset, costs
from vit_demo.weights.costs import Cost


def pool_of(preset: Preset, *, slow: bool = False, seconds: float = 0.0) -> str:
    """The worker pool for work on a model that takes so long, or is ``slow``: many passes in one.

    Models that visitors bring have pools of their own.
    """
    if not preset.trusted:
        return "custom slow" if slow else "custom"
    return "slow" if slow else "photos" if seconds > QUICK_SECONDS else preset.task


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

    def pool(self, preset: Preset, *, slow: bool = False, seconds: float = 0.0, live: bool = False) -> str:
        """The worker pool for work on this picture, as ``pool_of``.

        Nothing else waits for a file that must be decoded first, nor for passes on what is ``live``.
        """
        if slow or self.is_decoded is None or not preset.trusted:
            pool = pool_of(preset, slow=slow, seconds=seconds)
        else:
            pool = "photos" if self.is_decoded() else "files"
        return f"live {pool}" if live and f"live {pool}" in POOLS else pool

    def turn(
        self,
        preset: Preset,
        patch_size: int,
        cost: Callable[..., Cost] = costs.forward,
        times: int = 1,
        *,
        live: bool = False,
    ) -> Turn:
        """A turn of work on this picture that costs so much, and is one of as many; ``live`` as in ``pool``."""
        seconds, slow = cost(preset.config, patch_size).seconds, cost is costs.many_passes
        pool = self.pool(preset, slow=slow, seconds=times * seconds, live=live)
        return Turn(pool, job_bytes(preset, patch_size, slow=slow), seconds)

    @classmethod
    def of(cls, image: images.ImageSource) -> Source:
        """Reads a picture at once; raises ``ImageError``."""
        picture = images.read_image(image)
        digest = hashlib.sha256(picture.tobytes()).digest()
        return cls((picture.size, digest), lambda: picture)
