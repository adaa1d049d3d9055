"""Checks of arguments that several packages share."""

from __future__ import annotations

import difflib
import operator
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from vit_demo.defaults import MAX_HEADS
from vit_demo.errors import InputError, MissingPackageError, PresetError

if TYPE_CHECKING:
    import torch

MOST_NAMES = 2000  # names that a wrong one is compared with, which takes some milliseconds


def whole_number(value: Any, name: str, lowest: int | None = None) -> int:
    """An integer of Python, numpy or torch as Python's; ``InputError`` for ``True``, 1.0, or one below ``lowest``."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    is_truth = isinstance(value, bool) or "bool" in str(getattr(value, "dtype", ""))
    if number is None or is_truth or (lowest is not None and number < lowest):
        least = "" if lowest is None else f" from {lowest}"
        raise InputError(f"{name} must be a whole number{least}, not {value!r:.40}.")
    return number


def read_heads(text: str) -> tuple[tuple[int, int], ...]:
    """(block, head) of each head in a text such as ``"2.1,4.3"``, from 0; none for "".

    Raises:
        InputError: If it is no such text, or names more than ``MAX_HEADS`` or one of them twice.
    """
    names, number = text.split(",", MAX_HEADS) if text else [], r"(0|[1-9][0-9]{0,3})"
    if len(names) > MAX_HEADS or not all(re.fullmatch(rf"{number}\.{number}", name) for name in names):
        raise InputError(f"Heads are written as block.head, such as 2.1,4.3, at most {MAX_HEADS}, not {text!r:.40}.")
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise InputError(f"The head {twice} is named twice: name each once.")
    return tuple((int(block), int(head)) for block, head in (name.split(".") for name in names))


def require(module: str, what: str, extra: str = "app") -> None:
    """``MissingPackageError`` if a module that ``what`` needs, as an extra of vit_demo installs it, is not there."""
    if find_spec(module) is None:
        raise MissingPackageError(f'{what} needs {module}: run pip install "vit_demo[{extra}]".')


def is_address(url: str) -> bool:
    """Whether a text is an address of HTTP with a host that can be asked for, and nothing after its path."""
    try:
        parts = urlsplit(url)
        has_host = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return has_host and parts.scheme in ("http", "https") and not re.search(r"[\s?#]", url)


def check_proxies() -> None:
    """Checks the proxies of the environment; ``PresetError`` if a client of HTTP would fail with one."""
    from urllib.request import getproxies  # here, because the process that decodes pictures needs none

    known = getproxies()
    for url in (known[name] for name in ("http", "https", "all") if name in known):
        scheme, _, rest = url.rpartition("://")
        scheme = scheme.lower() or "http"
        if scheme.startswith("socks5") and find_spec("socksio") is None:
            raise PresetError('A SOCKS proxy needs socksio: run pip install "httpx[socks]", or unset ALL_PROXY.')
        if scheme not in ("http", "https", "socks5", "socks5h"):
            raise PresetError(f"A proxy begins with {scheme}://: write it with http://, https:// or socks5://.")
        if not is_address(f"http://{rest}") or not url.isascii():
            raise PresetError("A proxy of this machine is no address: write it like http://host:3128.")


def is_behind_proxy(url: str) -> bool:
    """Whether a proxy of the environment stands between this machine and an address."""
    from urllib.request import getproxies, proxy_bypass  # here, for the same reason

    parts, known = urlsplit(url), getproxies()
    return bool((known.get(parts.scheme) or known.get("all")) and not proxy_bypass(parts.hostname or ""))


def did_you_mean(name: Any, known: Iterable[str]) -> str:
    """The end of an error about an unknown name: known ones that differ by a number, or the one most like it."""
    if not isinstance(name, str) or len(name) >= 100:
        return ""
    names = list(islice(known, MOST_NAMES))
    found = [one for one in names if one.startswith(f"{name} (")][:3] or difflib.get_close_matches(name, names, 1)
    return f" (did you mean {' or '.join(map(repr, found))}?)" if found else ""


def find_device(name: str | torch.device) -> torch.device:
    """A device by its name, such as ``"cpu"``, ``"mps"`` or ``"cuda:1"``; ``InputError`` if this machine has none."""
    import torch  # here, because the other checks do without it

    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, TypeError, NotImplementedError) as error:
        found = [torch.accelerator.current_accelerator()] if torch.accelerator.is_available() else []
        there = " or ".join(["cpu", *(str(one) for one in found)])
        raise InputError(f"This machine has no device {str(name)!r}: choose {there}.") from error
    return device


def composed(name: str) -> str:
    """A name for comparisons: one text can be written with accents apart (NFD) and with letters that have them."""
    return unicodedata.normalize("NFC", name)


def printable(text: str) -> str:
    """A text on one line, whose control characters, and bytes of a file's name that are no text, are written out."""
    hidden = r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]"
    return re.sub(
        hidden, lambda found: ascii(found[0])[1:-1] if ord(found[0]) > 255 else f"\\x{ord(found[0]):02x}", text
    )


def cell(value: Any) -> Any:
    """A value for a table: a text such that no program takes it for a formula."""
    text = printable(value) if isinstance(value, str) else value
    return f"'{text}" if isinstance(text, str) and text.lstrip()[:1] in tuple("=+-@＝＋－＠") else text


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[None]:
    """A context in which a file is written; ``InputError`` with its path if that is not possible."""
    from safetensors import SafetensorError  # here, because the process that decodes pictures needs none

    try:
        yield
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{os.fspath(path)} cannot be written ({reason}): choose another folder.") from error


def path_or_name(preset: Any) -> str:
    """The name of a preset, or the path of its folder, as a string; ``PresetError`` if it is neither."""
    if not isinstance(preset, str | os.PathLike):
        raise PresetError(f"A preset is chosen by its name, not by {type(preset).__name__}.")
    return os.fspath(preset)
