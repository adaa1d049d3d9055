"""Writes the types of what the page and the server send each other, for tsc: ``python -m scripts.typescript``.

They come from the Python types of the payload, the requests and the constants, so that no type stands twice. A test
compares the file with what this command would write, and another lets tsc check the modules that say ``@ts-check``.
"""

from __future__ import annotations

import types
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints

from vit_demo.web.api.schemas import MethodEntry
from vit_demo.web.frontend import assets
from vit_demo.web.frontend.constants import constants
from vit_demo.web.requests import payload
from vit_demo.web.requests.kinds import KINDS, CurveRequest, SetRequest
from vit_demo.web.requests.maps import MapRequest
from vit_demo.web.requests.tour import StepRequest

FILE = Path(assets.__file__).parent / "types.d.ts"

SENT = (
    payload.SourcePayload,
    payload.MapsPayload,
    payload.TracePayload,
    payload.PredictionsPayload,
    payload.PhotoPayload,
    payload.ResultPayload,
    payload.EmptyPayload,
    MethodEntry,
    MapRequest,
    CurveRequest,
    SetRequest,
    StepRequest,
)

PLAIN = {str: "string", int: "number", float: "number", bool: "boolean", type(None): "null", Any: "any"}

REST = """\
/** What `server.request` gets; which fields belong to which kind is in web/requests/kinds.py. */
export type Request = { kind: Kind; source?: SourcePayload } & Record<string, unknown>;

/** One of: the result, one sentence, or the progress of its job; see web/requests/poll.py. */
export interface Reply {
  result?: any;
  error?: string;
  retry?: boolean;
  lost?: boolean;
  done?: number;
  total?: number;
  tried?: number[]; // patches that a search has just tried to do without
  fewest?: number[]; // the fewest that it has found so far
}

export interface Server {
  request(fields: Request): Promise<Reply>;
  upload(file: Blob): Promise<{ path?: string; error?: string }>;
  /** The modules of the page, with those of a file of `LATER` in web/frontend/modules.py. */
  load?(name: string): Promise<any>;
}
"""


def typescript() -> str:
    """The text of the file."""
    kinds = " | ".join(f'"{kind}"' for kind in KINDS)
    facts = {name: _of_value(value) for name, value in constants().items()}
    parts = [
        "// Written by `python -m scripts.typescript` from the Python types; do not edit.",
        *map(_interface, SENT),
        _block("Constants", facts),
        f"export type Kind = {kinds};",
        REST,
    ]
    return "\n\n".join(parts)


def _interface(kind: Any) -> str:
    hints = get_type_hints(kind, include_extras=True)
    optional = {name for name, hint in hints.items() if get_origin(hint) is NotRequired}
    if is_dataclass(kind):
        optional = {field.name for field in fields(kind) if field.default is not MISSING}
    return _block(
        kind.__name__, {f"{name}?" if name in optional else name: _of_type(hint) for name, hint in hints.items()}
    )


def _block(name: str, members: dict[str, str]) -> str:
    lines = "".join(f"  {member}: {kind};\n" for member, kind in members.items())
    return f"export interface {name} {{\n{lines}}}"


def _of_type(hint: Any) -> str:
    if hint in PLAIN:
        return PLAIN[hint]
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return " | ".join(map(_of_type, arguments))
    if origin is Literal:
        return " | ".join(f'"{value}"' for value in arguments)
    if origin in (Annotated, NotRequired):
        return _of_type(arguments[0])
    if origin in (list, tuple):  # tuples of any length
        return f"{_of_type(arguments[0])}[]"
    if origin is dict:
        return f"Record<string, {_of_type(arguments[1])}>"
    return str(hint.__name__)


def _of_value(value: Any) -> str:
    return f"{_of_value(value[0])}[]" if isinstance(value, list) else PLAIN[type(value)]


if __name__ == "__main__":
    FILE.write_text(typescript(), encoding="utf-8")
