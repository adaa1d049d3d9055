"""The page's modules: served as they are in the package, nothing else is, and never under another release's address."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from vit_demo.web.components import modules

FOLDER = Path(modules.__file__).parent
BASE = f"{modules.PREFIX}/{modules.version()}"
IMPORT = re.compile(
    r"""(?:^import[^;]*?from |^export [^;]*?from |^import |\bimport\()["'`]([^"'`]+)["'`]""", re.MULTILINE
)


@pytest.fixture(scope="module")
def client() -> TestClient:
    return TestClient(Starlette(routes=list(modules.routes())))


def test_every_module_of_the_package_is_served_as_it_is(client: TestClient) -> None:
    names = {path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.js")}
    assert names == set(modules.modules()) and {"stage/main.js", "inputs/main.js"} <= names
    for name in names:
        response = client.get(f"{BASE}/{name}")
        assert response.status_code == 200 and response.content == (FOLDER / name).read_bytes()
        assert response.headers["content-type"].startswith("text/javascript")
        assert response.headers["cache-control"] == "public, max-age=31536000, immutable"


def test_languages_are_served_with_the_modules(client: TestClient) -> None:
    names = {path.name for path in modules.LANGUAGES.glob("*.json")}
    assert {f"languages/{name}" for name in names} == set(modules.files()) - set(modules.modules())
    for name in names:
        response = client.get(f"{BASE}/languages/{name}")
        assert response.headers["content-type"] == "application/json" and response.json()["Next"]
    assert "languages" not in modules.preload_links(), "one is fetched where it is needed"


@pytest.mark.parametrize(
    "path",
    [
        f"{BASE}/",
        f"{BASE}/languages/",
        f"{BASE}/languages/../pad.json",
        f"{BASE}/stage/stage.css",
        f"{BASE}/stage.py",
        f"{BASE}/../modules.py",
        f"{BASE}/..%2f..%2fsecurity.py",
        f"{BASE}/stage/../../security.py",
        f"{BASE}/%2fetc%2fpasswd",
        f"{BASE}/stage/main.js%00",
        f"{BASE}/STAGE/main.js",
        f"{modules.PREFIX}/0123456789abcdef/stage/main.js",
        f"{modules.PREFIX}/stage/main.js",
    ],
)
def test_nothing_else_is_served(client: TestClient, path: str) -> None:
    response = client.get(path)
    assert response.status_code == 404 and "immutable" not in response.headers.get("cache-control", "")


def test_modules_can_only_be_read(client: TestClient) -> None:
    assert client.post(f"{BASE}/stage/main.js", content=b"x").status_code == 405
    assert client.head(f"{BASE}/stage/main.js").status_code == 200


def test_another_release_has_other_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    served = modules.files()
    versions = {modules.version()}
    for changed in (
        {**served, "stage/main.js": served["stage/main.js"] + b" "},
        {**served, "stage/more.js": b""},
        {name: served[name] for name in list(served)[1:]},
    ):
        monkeypatch.setattr(modules, "files", lambda changed=changed: changed)
        versions.add(modules.version.__wrapped__())
    assert len(versions) == 4


def test_modules_import_modules_of_the_package_alone() -> None:
    for name, content in modules.modules().items():
        for found in IMPORT.findall(content.decode()):
            assert found.startswith(("./", "../")), f"{name} imports {found} from elsewhere"
            if "${" in found:  # the views of the stage, by name
                assert (name, found) == ("stage/main.js", "./views/${name}.js")
                continue
            parts: list[str] = []
            for part in (*PurePosixPath(name).parent.parts, *found.split("/")):
                if part == "..":
                    parts.pop()
                elif part != ".":
                    parts.append(part)
            assert "/".join(parts) in modules.modules(), f"{name} imports {found}, which does not exist"


def test_the_head_of_the_page_preloads_every_module_relative_to_the_page() -> None:
    links = re.findall(r'<link rel="modulepreload" href="([^"]+)">', modules.preload_links())
    assert links == [f".{BASE}/{name}" for name in modules.modules()]
