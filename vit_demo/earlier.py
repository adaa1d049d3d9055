"""Spellings of the version before, which are accepted for one more version and warn."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from vit_demo.errors import InputError, warn

P = ParamSpec("P")
R = TypeVar("R")


def spelled(*positions: str, **names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator for functions that were called in another way before.

    Args:
        *positions: Keyword-only parameters that were given by position, after the others.
        **names: Earlier names of parameters, each with that of today.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        parameters = inspect.signature(function).parameters.values()
        known = [one.name for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD]
        places = [*known, *positions]

        @wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            earlier = dict(zip(positions, args[len(known) :], strict=False))
            given = dict(zip(known, args, strict=False)) | earlier | options
            for old, new in names.items():
                if (value := given.pop(old, None)) is not None:
                    if given.get(new) is not None:
                        raise InputError(f"{new}= and {old}= are the same: give only one of both.")
                    earlier[new] = given[new] = value
            if len(args) > len(places) or any(name in options for name in places[: len(args)]):
                return function(*args, **options)  # whose TypeError says what is wrong
            if earlier:
                spelling = ", ".join(f"{name}=" for name in earlier)
                warn(f"Spell it {spelling} in {function.__name__}: the next version does.", FutureWarning)
            return function(**given)  # type: ignore[call-arg]

        return call

    return decorate
