"""The files of this folder: HTML, style sheets, and JavaScript modules joined into a single file.

Each module becomes a function that returns its exports, called once, after those of the modules that it imports. Our
modules need no more of the language than this: `import { a, b as c } from "./file.js"`, `export` before a function or a
constant, `` import(`./folder/${name}.js`) ``, and `import.meta.url`, and no template within another. Anything else is
an error when the server starts.
"""

import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from posixpath import dirname, join, normpath

from rjsmin import jsmin

FOLDER = Path(__file__).parent

VIEWS = (
    "features", "predictions", "ask", "blocks", "mapTable", "compare", "steps", "faithfulness", "build", "teach",
    "download",
)  # fmt: skip
"""The views in their order on the page: folders of `stage/views/` with a module `view.js`, and perhaps a `view.css`."""
OFFLINE_VIEWS = ("predictions", "blocks", "mapTable", "download")  # the views that work without a server, in a notebook

_IMPORT = re.compile(r'^import \{([^}]*)\} from "(\.\.?/[^"]+)";$', re.MULTILINE)
_COMPUTED_IMPORT = re.compile(r"\bimport\(`(\.\.?/[^`]+)`\)")
_EXPORT = re.compile(r"^export (?=(?:const|function|async function) (\w+))", re.MULTILINE)
_OTHER = re.compile(r"^(?:import|export)\b.*|\bimport\s*\(.*", re.MULTILINE)
_NESTED = re.compile(r"\$\{(?:[^{}`]|\{[^{}`]*\})*`.*")  # a template within one, of which jsmin would take the spaces
_COMMENT = re.compile(r"^\s*(?://.*|/\*\*(?:[^*]|\*(?!/))*\*/)\n", re.MULTILINE)
_REMARK = re.compile(r"(?<=[;,{}()\[\]]) // .*$", re.MULTILINE)
_TYPE = re.compile(r"/\*\* @type [^*]*\*/ ")
_MARK = re.compile(r'\benglish\(\s*("(?:[^"\\\n]|\\.)*"),?\s*\)')
_CSS_SPACE = re.compile(r"^\s+|(?<=[{};,(])\n\s*", re.MULTILINE)
_CSS_COMMENT = re.compile(r"[ \t]*/\*(?:(?!\*/)(?:.|\n))*\*/[ \t]*$", re.MULTILINE)


def read(name: str) -> str:
    """The text of a file by its path in this folder, such as `"pad/pad.css"`."""
    return (FOLDER / name).read_text(encoding="utf-8")


def read_styles(*names: str) -> str:
    """Joins style sheets, without needless spaces and comments at the ends of lines; paths as in `read`."""
    return _CSS_SPACE.sub("", _CSS_COMMENT.sub("", "\n".join(map(read, names))))


def stage_styles(views: Iterable[str]) -> str:
    """The colours of the page, the style of the stage, then that of some views."""
    of_views = (f"stage/views/{name}/view.css" for name in views)
    of_stage = (f"stage/{name}.css" for name in ("stage", "photos", "drawer"))
    return read_styles(
        "shared/palette.css", "shared/widgets.css", *of_stage, *(path for path in of_views if (FOLDER / path).is_file())
    )


@cache
def sources() -> dict[str, str]:
    """The modules of all components by their path, such as `"stage/main.js"`."""
    return {path.relative_to(FOLDER).as_posix(): path.read_text("utf-8") for path in sorted(FOLDER.glob("*/**/*.js"))}


def bundle(sources: Mapping[str, str], starts: Iterable[str], later: str = "") -> str:
    """Joins modules and all that they import.

    Args:
        sources: The source of each module by its path, such as `"stage/main.js"`.
        starts: The paths of the modules to begin with.
        later: The path of a module that is fetched when it is wanted: the bundle is what it needs beside the others.

    Returns:
        The source of one module, without types, comments and needless spaces. It exports `modules`, an object from
        paths to what those modules export; for `later`, a function that adds to that object, and returns it.
        `import.meta.url` in a module is as if it were served by its path in the folder of the bundle.

    Raises:
        ValueError: If modules import each other in a circle, import what is not there, or use other ways to import or
            export than those of this package's modules.
    """
    ordered: dict[str, str] = {}

    def add(path: str, importers: tuple[str, ...] = ()) -> None:
        if path in ordered:
            return
        chain = (*importers, path)
        if path in importers:
            raise ValueError(f"These modules import each other in a circle: {', '.join(chain)}.")
        if path not in sources:
            raise ValueError(f"There is no module {path}, which {importers[-1] if importers else 'the page'} imports.")
        for imported in _imported(path, sources):
            add(imported, chain)
        ordered[path] = _as_function(path, sources[path])

    for start in starts:
        add(start)
    present = set(ordered)
    if later:
        add(later)
    wanted = ordered.keys() - present if later else present
    functions = "".join(
        f'modules["{path}"] = (() => {{\n{source}}})();\n' for path, source in ordered.items() if path in wanted
    )
    if later:
        return f"export const add = (modules) => {{\n{functions}return modules;\n}};\n"
    return f"export const modules = {{}};\n{functions}"


def _imported(path: str, sources: Mapping[str, str]) -> list[str]:
    """The modules that a module imports; for a computed path, all that match it."""
    found = [_resolve(path, address) for _, address in _IMPORT.findall(sources[path])]
    patterns = [re.sub(r"\$\{[^}]*\}", "*", _resolve(path, each)) for each in _COMPUTED_IMPORT.findall(sources[path])]
    return found + [name for name in sources for pattern in patterns if fnmatchcase(name, pattern)]


def _as_function(path: str, source: str) -> str:
    """The body of a function with the module's code, which returns its exports."""

    def constants(match: re.Match[str]) -> str:
        names, address = match.groups()
        return f'const {{{names.replace(" as ", ": ")}}} = modules["{_resolve(path, address)}"];'

    exports = _EXPORT.findall(source)
    for pattern in (_COMMENT, _REMARK, _TYPE):
        source = pattern.sub("", source)
    source = _EXPORT.sub("", _IMPORT.sub(constants, _MARK.sub(r"\1", source)))
    source = _COMPUTED_IMPORT.sub(lambda match: f"Promise.resolve(modules[`{_resolve(path, match[1])}`])", source)
    source = source.replace("import.meta.url", f'import.meta.url.replace(/[^/]*$/, "{path}")')
    other = _OTHER.search(source) or _NESTED.search(source)
    if other:
        raise ValueError(f"{path} cannot be joined with the others: {other[0]}")
    return f"{jsmin(source)}\nreturn {{ {', '.join(exports)} }};\n"


def _resolve(path: str, address: str) -> str:
    """The path of an imported module, from its relative address and the path of its importer."""
    return normpath(join(dirname(path), address))
