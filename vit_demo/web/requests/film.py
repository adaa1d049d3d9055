"""The film's request: all of its numbers at once, so that it plays without another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vit_demo.inference.exploration import Exploration
from vit_demo.inference.film import film
from vit_demo.web.requests import parse
from vit_demo.web.requests.parse import Json
from vit_demo.web.requests.payload import encode


@dataclass(frozen=True)
class FilmRequest:
    """Whose attention the film shows: that of a patch, row by row, or for None of what stands for the picture."""

    query: parse.Query = None


def film_result(result: Exploration, request: FilmRequest) -> Json:
    """The fields of ``inference.film.Film``: base64 of float32 and uint32; ``labels`` are the names of the classes."""
    found = film(result, None if request.query is None else divmod(request.query, result.grid[1]))
    return {
        "attention": encode(found.attention),
        "pairs": encode(found.pairs.astype(np.uint32)),
        "shares": encode(found.shares),
        "components": found.components.tolist(),
        "tokens": encode(found.tokens),
        "width": found.width,
        "classes": found.classes.tolist(),
        "labels": [result.labels[index] for index in found.classes],
        "answers": encode(found.answers),
    }
