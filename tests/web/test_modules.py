"""The page's JavaScript: served as one file, nothing else is, and never under another release's address."""

import json
import re
import subprocess
from pathlib import Path
from urllib.request import urlopen

import brotli
import gradio as gr
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from tests.test_javascript import node
from vit_demo.web.frontend import modules
from vit_demo.web.frontend.assets import FOLDER, bundle, sources
from vit_demo.web.guard.compression import LATER_LEVEL, Compression

BASE = f"{modules.PREFIX}/{modules.version()}"
SMALL = {
    "a/main.js": """\
// Starts.
import {
  half,
  twice as double,
} from "../b/numbers.js";
import { name } from "./name.js";

const kinds = ["one", "two"];
export const loaded = Promise.all(kinds.map((kind) => import(`./kinds/${kind}.js`)));

/** Says it. */
export async function say() {
  const [first, second] = await loaded;
  return `${name}: ${double(half(8))} ${first.kind} ${second.kind}`;
}
""",
    "a/name.js": """\
// @ts-check
const kind = /** @type {import("./kinds/one.js").kind} */ (1);
export const name = new URL("../b/x.json", import.meta.url).href.split("/").slice(-2).join("/");
""",
    "a/kinds/one.js": 'import { half } from "../../b/numbers.js";\nexport const kind = half(2);\n',
    "a/kinds/two.js": "export const kind = 2;\n",
    "b/numbers.js": "export const half = (x) => x / 2;\nexport function twice(x) {\n  return 2 * x;\n}\n",
    "b/unused.js": "throw new Error();\n",
}


@pytest.fixture(scope="module")
def client() -> TestClient:
    return TestClient(Compression(Starlette(routes=list(modules.routes()))))


def test_a_bundle_does_what_its_modules_do(tmp_path: Path) -> None:
    for path, source in SMALL.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(source)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "page.js").write_text(bundle(SMALL, ["a/main.js"]))
    (tmp_path / "run.js").write_text(
        'import { say } from "./a/main.js";\nimport { modules } from "./page.js";\n'
        'console.log(JSON.stringify([await say(), await modules["a/main.js"].say(), Object.keys(modules)]));\n'
    )
    output = subprocess.run([node(), "run.js"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    apart, joined, bundled = json.loads(output)
    assert apart == joined == "b/x.json: 8 1 2"
    assert set(bundled) == set(SMALL) - {"b/unused.js"}


@pytest.mark.parametrize(
    ("sources", "sentence"),
    [
        (
            {"a.js": 'import { b } from "./b.js";\n', "b.js": 'import { a } from "./a.js";\n'},
            "circle: a.js, b.js, a.js",
        ),
        ({"a.js": 'import { b } from "./b.js";\n'}, "no module b.js, which a.js imports"),
        ({}, "no module a.js, which the page imports"),
        ({"a.js": "export default 1;\n"}, "a.js cannot be joined with the others: export default 1;"),
        ({"a.js": "export let a = 1;\n"}, "export let"),
        ({"a.js": 'import * as b from "./a.js";\n'}, "import \\* as b"),
        ({"a.js": 'import { b } from "https://example.org/b.js";\n'}, "example.org"),
        ({"a.js": "const b = import(name);\n"}, "import\\(name"),
        ({"a.js": "const b = `${c.map(({ d }) => `${d} ${d}`)} e`;\n"}, "cannot be joined"),
        ({"a.js": "const b = `a ${c ? ` · ${d}` : ''}`;\n"}, "cannot be joined"),
    ],
)
def test_what_cannot_be_joined_is_an_error(sources: dict[str, str], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        bundle(sources, ["a.js"])


def test_the_page_gets_every_module_in_one_file_but_what_it_fetches_later(client: TestClient) -> None:
    names = {path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.js")}
    assert names == set(sources())
    scripts = [name for name in modules.files() if name.endswith(".js")]
    assert scripts == ["page.js", *modules.LATER]
    text, found = "", list[str]()
    for name in scripts:
        response = client.get(f"{BASE}/{name}", headers={"accept-encoding": "identity"})
        assert response.headers["content-type"].startswith("text/javascript")
        assert response.headers["cache-control"] == "public, max-age=31536000, immutable"
        held = re.findall(r'^modules\["(.*)"\] = ', response.text, re.MULTILINE)
        start = modules.LATER.get(name, "header/main.js")
        assert start in held and not {*modules.LATER.values()} & set(held) - {start}, "each is what it is fetched for"
        assert name == "page.js" or all(path.startswith(start[: start.rindex("/")]) for path in held)
        text, found = text + response.text, found + held
    assert sorted(found) == sorted(names), "each once"
    marked = re.findall(r'\benglish\(("[^"\\]*")\)', "".join(sources().values()))
    assert 'english("' not in text and marked, "marks are left out"
    assert [words for words in marked if words not in text] == [], "texts are not"


def test_what_is_fetched_later_uses_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "page.js").write_text(bundle(SMALL, ["a/name.js", "b/numbers.js"]))
    (tmp_path / "later.js").write_text(bundle(SMALL, ["a/name.js", "b/numbers.js"], "a/main.js"))
    (tmp_path / "run.js").write_text(
        'import { modules } from "./page.js";\nimport { add } from "./later.js";\n'
        "const before = Object.keys(modules);\n"
        'console.log(JSON.stringify([before, await add(modules)["a/main.js"].say(), Object.keys(modules).length]));\n'
    )
    output = subprocess.run([node(), "run.js"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert json.loads(output) == [["a/name.js", "b/numbers.js"], "b/x.json: 8 1 2", 5]
    assert "export const half" not in (tmp_path / "later.js").read_text(), "nothing comes twice"


def test_it_is_sent_compressed(client: TestClient) -> None:
    with client.stream("GET", f"{BASE}/page.js", headers={"accept-encoding": "gzip, br"}) as response:
        sent = b"".join(response.iter_raw())
    assert response.headers["content-encoding"] == "br" and "accept-encoding" in response.headers["vary"]
    assert brotli.decompress(sent) == modules.files()["page.js"]


def test_a_first_visit_gets_at_most_125_kb_of_ours(page: gr.Blocks) -> None:
    with urlopen(page.local_url) as answer:
        document = answer.read()
    sizes = [len(brotli.compress(each, quality=LATER_LEVEL)) for each in (document, modules.files()["page.js"])]
    assert sum(sizes) < 125_500, "beside 212 kB of Gradio's"


def test_languages_are_served_beside_it(client: TestClient) -> None:
    names = {path.name for path in modules.LANGUAGES.glob("*.json")}
    assert {f"languages/{name}" for name in names} == set(modules.files()) - {"page.js", *modules.LATER}
    for name in names:
        response = client.get(f"{BASE}/languages/{name}")
        assert response.headers["content-type"] == "application/json" and response.json()["Next"]


@pytest.mark.parametrize(
    "path",
    [
        f"{BASE}/",
        f"{BASE}/languages/",
        f"{BASE}/languages/../pad.json",
        f"{BASE}/stage/stage.css",
        f"{BASE}/assets.py",
        f"{BASE}/../modules.py",
        f"{BASE}/..%2f..%2fsecurity.py",
        f"{BASE}/stage/../../security.py",
        f"{BASE}/%2fetc%2fpasswd",
        f"{BASE}/page.js%00",
        f"{BASE}/PAGE.js",
        f"{BASE}/stage/main.js",
        f"{modules.PREFIX}/0123456789abcdef/page.js",
        f"{modules.PREFIX}/page.js",
    ],
)
def test_nothing_else_is_served(client: TestClient, path: str) -> None:
    response = client.get(path)
    assert response.status_code == 404 and "immutable" not in response.headers.get("cache-control", "")


def test_modules_can_only_be_read(client: TestClient) -> None:
    assert client.post(f"{BASE}/page.js", content=b"x").status_code == 405
    assert client.head(f"{BASE}/page.js").status_code == 200


def test_another_release_has_other_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    served = modules.files()
    versions = {modules.version()}
    for changed in (
        {**served, "page.js": served["page.js"] + b" "},
        {**served, "more.js": b""},
        {name: served[name] for name in list(served)[1:]},
    ):
        monkeypatch.setattr(modules, "files", lambda changed=changed: changed)
        versions.add(modules.version.__wrapped__())
    assert len(versions) == 4
