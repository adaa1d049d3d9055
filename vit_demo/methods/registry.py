"""The registry of explanation methods, from which Python, command line, API, page and documentation take their lists.

A method is one file in this folder with one decorated function::

    @register("norm", title="Norm", class_specific=False, cost="trace", unit="length of a vector", options=[BLOCK])
    def norm(trace: Trace, block: int = -1) -> Tensor: ...

``vit_demo.methods`` imports every file of the folder.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from numbers import Integral
from typing import Any, Literal, TypeVar, get_args

import torch
from torch import Tensor

from vit_demo.checks import did_you_mean
from vit_demo.defaults import DIRECTIONS
from vit_demo.errors import InputError
from vit_demo.methods.units import FLOORS, Floor
from vit_demo.trace import Trace, TracedViT
from vit_demo.trace.trace import to_grid

F = TypeVar("F", bound=Callable[..., Tensor])
Cost = Literal["trace", "forward", "backward", "many passes"]
"""What a map needs: nothing but the trace of the prediction, another pass, a pass with its gradient, or many passes."""

_COSTS = get_args(Cost)

OptionKind = Literal["block", "head", "query", "choice", "integer", "flag"]


@dataclass(frozen=True, kw_only=True)
class Option:
    """A choice that a method offers, passed to its function by name.

    Attributes:
        name: The name of the function's parameter.
        kind: ``"block"``: a block, from 0, negative from the end. ``"head"``: from 0, None for the mean of all.
            ``"query"``: the token that the map is about; (row, col) in ``Exploration.heatmap``, its index in the
            function. ``"choice"``, ``"integer"`` and ``"flag"`` are plain values.
        bounds: Least and greatest value of an integer.
        choices: The values of a choice.
        default: The function's own, filled in by ``register``.
    """

    name: str
    kind: OptionKind
    bounds: tuple[int, int] | None = None
    choices: tuple[str, ...] = ()
    default: int | str | bool | None = None

    def check(self, value: Any) -> None:
        """Checks a plain value; ``InputError`` if it is wrong. Blocks, heads and queries depend on the result."""
        if self.kind == "choice" and value not in self.choices:
            raise InputError(f"There is no {self.name} {value!r}: choose one of {', '.join(self.choices)}.")
        if self.bounds is not None:
            lowest, highest = self.bounds
            if isinstance(value, bool) or not isinstance(value, Integral) or not lowest <= int(value) <= highest:
                raise InputError(f"{self.name} must be a whole number from {lowest} to {highest}, not {value!r}.")
        if self.kind == "flag" and type(value) is not bool:
            raise InputError(f"{self.name} must be True or False, not {value!r}.")

    def to_dict(self) -> dict[str, Any]:
        """Name, kind and default, with bounds and choices where there are any, as plain values for JSON."""
        bounds = {} if self.bounds is None else {"bounds": list(self.bounds)}
        choices = {"choices": list(self.choices)} if self.choices else {}
        return {"name": self.name, "kind": self.kind, "default": self.default} | bounds | choices


BLOCK = Option(name="block", kind="block")
HEAD = Option(name="head", kind="head")
QUERY = Option(name="query", kind="query")
DIRECTION = Option(name="direction", kind="choice", choices=DIRECTIONS)


@dataclass(frozen=True, kw_only=True)
class Method:
    """One way to explain a prediction by a map over the patches.

    Attributes:
        name: By which it is chosen, and that of its file.
        title: Its name for people.
        class_specific: Whether the map depends on the class.
        cost: What a map needs; see ``Cost``.
        unit: That of the values; ``units.FLOORS`` says from where on they matter.
        signed: Whether values below 0 mean the opposite of those above, so that both get a colour.
        use: When to choose it, in one sentence.
        recommended: The plain words under which the page offers it first; empty for most methods.
        options: What can be chosen beside the class.
        description: One sentence: the first of the function's docstring.
        docs: The heading of its section in ``docs/explanations.md``.
        function: For the cost ``"trace"``: from a trace and the options to ``[B, N]``, one value a token. Otherwise it
            has the parameters of ``vit_demo.methods``: model, images, the target if it is class-specific,
            ``patch_size``, ``kept_patches``, ``against`` and ``progress`` if it makes use of them, and the options.
    """

    name: str
    title: str
    class_specific: bool
    cost: Cost
    unit: str
    signed: bool
    use: str
    recommended: str
    options: tuple[Option, ...]
    description: str
    docs: str
    function: Callable[..., Tensor]

    @property
    def is_slow(self) -> bool:
        """Whether it takes many passes, so that quick work should not wait for it."""
        return self.cost == "many passes"

    @property
    def reports_progress(self) -> bool:
        """Whether the function takes a ``progress`` callback."""
        return "progress" in inspect.signature(self.function).parameters

    @property
    def compares_classes(self) -> bool:
        """Whether the function takes ``against``, a class that the other is compared with."""
        return "against" in inspect.signature(self.function).parameters

    @property
    def floor(self) -> Floor:
        """The value that a map must reach to show anything that matters; 0 for a unit without one."""
        return FLOORS.get(self.unit, Floor(0.0, ""))

    def style(self, num_tokens: int) -> dict[str, Any]:
        """How a map of so many tokens is coloured: the arguments ``signed`` and ``floor`` of ``render.overlay``."""
        return {"signed": self.signed, "floor": self.floor.at(num_tokens)}

    def offers(self, option: str) -> bool:
        """Whether it has an option of that name."""
        return any(one.name == option for one in self.options)

    def check_options(self, options: dict[str, Any]) -> None:
        """Checks names and plain values of options; ``InputError`` if it has none of that name, or a value is wrong."""
        known = {option.name: option for option in self.options}
        for name, value in options.items():
            if name not in known:
                offered = f"choose from {', '.join(known)}" if known else "it has none"
                raise InputError(f"{self.name} has no option {name!r}: {offered}.")
            known[name].check(value)

    def compute(self, model: TracedViT, images: Tensor, target: Any = None, **options: Any) -> Tensor:
        """The maps ``[B, rows, cols]`` of some images ``[B, C, height, width]``, float32.

        Parameters as in ``vit_demo.methods``; ``target`` is ignored by methods that do not depend on it. The option
        ``query`` is the index of a token, by default the class token's, or None where there is no class token; see
        ``attention``.
        """
        given = {name: options.pop(name) for name in ("patch_size", "kept_patches") if name in options}
        if self.offers("query"):
            options.setdefault("query", 0 if model.config.class_token else None)
        if self.is_slow and self.class_specific and target is None:
            with torch.no_grad():
                target = int(model(images, **given).argmax(1))
        if self.cost != "trace":
            targets = (target,) if self.class_specific else ()
            return self.function(model, images, *targets, **given, **options)
        with torch.no_grad():
            model(images, trace := Trace(), **given)
            return to_grid(self.function(trace, **options), trace)

    def to_dict(self) -> dict[str, Any]:
        """The fields by which people and programs choose a method, as values for JSON."""
        names = ("name", "title", "class_specific", "cost", "unit", "signed", "use", "recommended", "description")
        values = {name: getattr(self, name) for name in names}
        return values | {"floor": asdict(self.floor), "options": [one.to_dict() for one in self.options]}


METHODS: dict[str, Method] = {}  # every method by name, in the order of ``list_methods``


def register(
    name: str,
    *,
    title: str,
    class_specific: bool,
    cost: Cost,
    unit: str,
    signed: bool = False,
    use: str = "",
    recommended: str = "",
    options: Sequence[Option] = (),
    docs: str | None = None,
) -> Callable[[F], F]:
    """Registers the decorated function as a method and returns it unchanged.

    Parameters as the attributes of ``Method``: each option is a parameter of the function, whose default it takes, and
    ``docs`` is the title by default. ``ValueError`` if the name is taken, or an option is no parameter.
    """

    def decorate(function: F) -> F:
        if name in METHODS:
            raise ValueError(f"There is a method {name!r} already: choose another name.")
        parameters = inspect.signature(function).parameters
        missing = [option.name for option in options if option.name not in parameters]
        if missing:
            raise ValueError(f"The method {name!r} has no parameter {missing[0]!r}: remove the option.")
        METHODS[name] = Method(
            name=name,
            title=title,
            class_specific=class_specific,
            cost=cost,
            unit=unit,
            signed=signed,
            use=use,
            recommended=recommended,
            options=tuple(replace(option, default=_default(option, parameters)) for option in options),
            description=" ".join((inspect.getdoc(function) or title).split("\n\n")[0].split()),
            docs=docs or title,
            function=function,
        )
        in_order = sorted(METHODS.values(), key=lambda one: (one.class_specific, _COSTS.index(one.cost), one.title))
        METHODS.clear()
        METHODS.update((one.name, one) for one in in_order)
        return function

    return decorate


def list_methods() -> list[str]:
    """The names of all methods: those that do not depend on the class first, and among them the cheapest."""
    return list(METHODS)


def find_method(name: str) -> Method:
    """A method by its name; ``InputError`` if there is none of that name."""
    if not isinstance(name, str) or name not in METHODS:
        raise InputError(
            f"There is no method {name!r}{did_you_mean(name, METHODS)}: choose one of {', '.join(METHODS)}."
        )
    return METHODS[name]


def _default(option: Option, parameters: Mapping[str, inspect.Parameter]) -> Any:
    """The function's default; for a query None, which stands for the token that the head reads."""
    return None if option.kind == "query" else parameters[option.name].default
