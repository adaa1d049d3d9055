"""What the descriptions of all commands share: their form, and the options of several."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from vit_demo.checks import read_heads
from vit_demo.defaults import (
    CLASSLESS_METHOD,
    DEFAULT_METHOD,
    DIGITS_PRESET,
    DIRECTIONS,
    FITS,
    PHOTOS_PRESET,
    WORDS_PRESET,
)
from vit_demo.errors import InputError
from vit_demo.words.texts import AS_TYPED

if TYPE_CHECKING:
    from vit_demo.methods import Method

PRESET_HELP = f"(default: {DIGITS_PRESET} for a drawing, {PHOTOS_PRESET} for a photo)"

Commands = Any  # what ``add_subparsers`` returns; argparse gives the type no public name


class Parser(argparse.ArgumentParser):
    """Prints errors on one line, without the usage, and keeps the line breaks of examples."""

    def __init__(self, **options: Any) -> None:
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, **options)

    def error(self, message: str) -> NoReturn:
        """Ends the program with exit code 2."""
        self.exit(2, f"{self.prog}: {message} (see --help)\n")


def add_command(
    commands: Commands, name: str, run: Callable[[argparse.Namespace], Any], description: str, examples: Sequence[str]
) -> argparse.ArgumentParser:
    """Adds a command.

    ``run`` is called with the options, and returns something true if some of the input was invalid and reported. An
    example is its arguments, without the name of program and command.
    """
    lines = [f"  {program_name()} {name} {line}".rstrip() for line in examples]
    epilog = "\n".join(["examples:", *lines])
    command = commands.add_parser(name, help=description, description=f"{description[0].upper()}{description[1:]}.")
    command.epilog = epilog
    command.set_defaults(run=run)
    return command


def program_name() -> str:
    """How the program was started, for help and examples that can be copied."""
    started = Path(sys.argv[0]).name
    return "vit-demo" if started.startswith("vit-demo") else "python -m vit_demo"


def names(text: str) -> list[str]:
    """Names between commas."""
    found = [part.strip() for part in text.split(",") if part.strip()]
    if not found:
        raise argparse.ArgumentTypeError("give at least one name")
    return found


def whole_numbers(text: str) -> list[int]:
    """Whole numbers between commas."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of whole numbers such as 4,7") from None


def add_combinations(command: argparse.ArgumentParser) -> None:
    """Adds ``--preset`` and ``--patch-size``, several of each."""
    command.add_argument(
        "--preset", "--model", type=names, action="extend", metavar="P[,P]",
        help=f"names from `presets`, repositories of the Hub as org/name, folders, or files of `teach` {PRESET_HELP}",
    )  # fmt: skip
    command.add_argument(
        "--patch-size", type=whole_numbers, action="extend", metavar="N[,N]",
        help="in pixels (default: all sizes of one preset; of several, the default of each)",
    )  # fmt: skip


def add_one_picture(command: argparse.ArgumentParser) -> None:
    """Adds IMAGE, ``--out`` and ``--json`` of a command that writes a table and a sheet about one picture."""
    command.add_argument("image", metavar="IMAGE", help="a picture file, or - for standard input")
    command.add_argument(
        "--out", type=Path, default=Path("out"), metavar="DIR", help="folder of the picture (default: out)"
    )
    command.add_argument("--json", action="store_true", help="print JSON with all values instead of a table")


def add_one_model(command: argparse.ArgumentParser) -> None:
    """Adds ``--preset``, ``--patch-size``, ``--labels`` and ``--template``."""
    command.add_argument(
        "--preset", "--model", metavar="P",
        help=f"a name from `presets`, a repository of the Hub as org/name, a folder, or a file of `teach` "
        f"{PRESET_HELP}",
    )  # fmt: skip
    command.add_argument("--patch-size", type=int, metavar="N", help="in pixels (default: the preset's)")
    add_labels(command)


def add_device(command: argparse.ArgumentParser) -> None:
    """Adds ``--device``."""
    command.add_argument(
        "--device", metavar="D", help="cpu, cuda, cuda:1, mps or xpu (default: the best of this machine)"
    )


def add_labels(command: argparse.ArgumentParser) -> None:
    """Adds ``--labels`` and ``--template``."""
    command.add_argument(
        "--labels", type=names, metavar="WORD[,WORD]",
        help=f"words as classes, for CLIP and SigLIP (default preset then: {WORDS_PRESET})",
    )  # fmt: skip
    command.add_argument(
        "--template", default=AS_TYPED, metavar="TEXT", help='the text of a word, as in "a photo of a {}"'
    )


def add_fit(command: argparse.ArgumentParser) -> None:
    """Adds ``--fit``."""
    command.add_argument(
        "--fit", choices=FITS, default=FITS[0], help="how a photo is fitted to the input (default: %(default)s)"
    )


def add_picture_options(command: argparse.ArgumentParser) -> None:
    """Adds ``--method``, ``--label``, ``--against``, ``--fit`` and ``--device``."""
    command.add_argument(
        "--method", type=names, action="extend", metavar="M[,M]",
        help=f"one or more explanation methods (default: {DEFAULT_METHOD}): {', '.join(method_names())}",
    )  # fmt: skip
    command.add_argument(
        "--label", metavar="CLASS", help="class to explain, for methods that depend on it (default: the predicted one)"
    )
    command.add_argument(
        "--against", metavar="CLASS", help="another class: show the evidence for --label rather than for this class"
    )
    add_fit(command)
    add_device(command)


def method_names() -> list[str]:
    """The names of the methods, which are those of their files: help does not wait for torch."""
    files = (Path(__file__).parents[1] / "methods").glob("*.py")
    return sorted(file.stem for file in files if "\n@register(" in file.read_text("utf-8"))


def chosen_methods(options: argparse.Namespace, *, has_classes: bool) -> list[Method]:
    """The methods of ``--method``, each once; a class may be named only if one of them depends on it.

    Without the option, the method depends on whether the model ``has_classes``.
    """
    from vit_demo.methods import find_method

    default = DEFAULT_METHOD if has_classes else CLASSLESS_METHOD
    methods = [find_method(name) for name in dict.fromkeys(options.method or [default])]
    applies = {
        "label": any(method.class_specific for method in methods),
        "against": any(method.compares_classes for method in methods),
    }
    for option, some in applies.items():
        if getattr(options, option) is not None and not some:
            chosen = ", ".join(method.name for method in methods)
            raise InputError(f"--{option} does not apply to {chosen}: add --method relevance, or leave it out.")
    return methods


def classes(options: argparse.Namespace, method: Method) -> tuple[str | None, str | None]:
    """The class of a map and the one it is compared with, as far as its method depends on them."""
    label = options.label if method.class_specific else None
    return label, options.against if method.compares_classes else None


def add_map_options(command: argparse.ArgumentParser) -> None:
    """Adds ``--block``, ``--head``, ``--query``, ``--direction`` and ``--option``, for what some methods have."""
    group = command.add_argument_group("options of some methods", "each applies to the chosen methods that have it")
    group.add_argument(
        "--block", type=int, metavar="N", help="counted from 0, negative numbers from the end (default: the last)"
    )
    group.add_argument("--head", type=int, metavar="N", help="counted from 0 (default: the mean of all)")
    group.add_argument(
        "--query", type=patch, metavar="ROW,COL", help="the patch the map is about (default: the class token)"
    )
    group.add_argument(
        "--direction",
        choices=DIRECTIONS,
        help="from: what the query attends to; to: what attends to it (default: from)",
    )
    group.add_argument(
        "--option", type=setting, action="append", default=[], metavar="NAME=VALUE",
        help="any other, such as window=3 of occlusion or steps=64 of integrated_gradients",
    )  # fmt: skip


def patch(text: str) -> tuple[int, int]:
    """Row and column of a patch."""
    try:
        row, col = map(int, text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a row and a column such as 3,4") from None
    return row, col


def heads(text: str) -> tuple[tuple[int, int], ...]:
    """Heads between commas, as of ``checks.read_heads``, at least one."""
    try:
        return read_heads(text or " ")
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error).removesuffix(".")) from None


def add_without_heads(command: argparse.ArgumentParser) -> None:
    """Adds ``--without-heads``."""
    command.add_argument(
        "--without-heads", type=heads, default=(), metavar="B.H[,B.H]",
        help="heads that are silent, as block.head from 0, such as 2.1,4.3",
    )  # fmt: skip


def setting(text: str) -> tuple[str, Any]:
    """A name and a value: a whole number, true, false, or a text."""
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise argparse.ArgumentTypeError(f"{text!r} is not a name and a value such as window=3")
    flags = {"true": True, "false": False}
    return name, int(value) if value.lstrip("-").isdecimal() else flags.get(value.lower(), value)


def chosen_maps(options: argparse.Namespace, *, has_classes: bool) -> tuple[list[Method], list[dict[str, Any]]]:
    """The methods, and the options that each of them has; ``InputError`` if none of them has an option."""
    methods = chosen_methods(options, has_classes=has_classes)
    names = ("block", "head", "query", "direction")
    set_options = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    for option in set_options:
        if not any(method.offers(option) for method in methods):
            chosen = ", ".join(method.name for method in methods)
            raise InputError(f"--{option} does not apply to {chosen}: add --method attention, or leave it out.")
    for option, _ in options.option:
        offered = [one.name for method in methods for one in method.options]
        if option not in offered:
            known = f"choose from {', '.join(dict.fromkeys(offered))}" if offered else "leave it out"
            raise InputError(f"None of the chosen methods has an option {option!r}: {known}.")
    set_options |= dict(options.option)
    offered_by = [{name: value for name, value in set_options.items() if method.offers(name)} for method in methods]
    for method, values in zip(methods, offered_by, strict=True):
        method.check_options(values)
    return methods, offered_by
