"""Every example of docs/api.md is run against a running page; tables and OpenAPI document list every endpoint."""

import json
import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.request import urlopen

import gradio
import pytest
from gradio_client import Client, handle_file
from PIL import Image

import vit_demo
from vit_demo.web.catalog.example_digits import example_picture
from vit_demo.web.guard.event_checks import MAX_EVENTS_OF_ONE

jsonschema = pytest.importorskip("jsonschema", reason="comes with the extra `mcp`")

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
LION = Path(gradio.__file__).parent / "media_assets" / "images" / "lion.jpg"


def node_modules() -> Path | None:
    """The folder that holds ``@gradio/client``, if any does."""
    folders = [ROOT / "node_modules", *(Path(one) for one in os.environ.get("NODE_PATH", "").split(os.pathsep) if one)]
    return next((folder for folder in folders if (folder / "@gradio" / "client").is_dir()), None)


@pytest.fixture
def folder(tmp_path):
    """A folder with the pictures that the examples name."""
    for name, digit in (("seven.png", 7), ("three.png", 3)):
        example_picture(digit).save(tmp_path / name)
    Image.open(LION).save(tmp_path / "photo.jpg")
    (tmp_path / "notes.txt").write_text("not a picture")
    return tmp_path


@pytest.fixture
def run(page, folder, capsys, monkeypatch):
    """Runs an example as it is written, but for the address of the server; gives what it prints."""
    address = page.local_url.rstrip("/")

    def run_one(kind: str, code: str) -> str:
        code = code.replace("http://127.0.0.1:7860", address)
        if kind == "python":
            monkeypatch.chdir(folder)
            with ThreadPoolExecutor(1) as pool:  # because Playwright keeps an event loop running in the main thread
                pool.submit(exec, compile(code, "docs/api.md", "exec"), {"__name__": "example"}).result()
            return capsys.readouterr().out
        command = ["bash", "-euo", "pipefail", "-c", code]
        if kind == "js":
            (folder / "node_modules").symlink_to(node_modules(), target_is_directory=True)
            (folder / "example.mjs").write_text(code)
            command = ["node", "example.mjs"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run_one


def examples(kind: str) -> list[str]:
    return [code for language, code in BLOCKS if language == kind]


def test_every_block_is_of_a_kind_that_is_run():
    assert {kind for kind, _ in BLOCKS} == {"python", "sh", "js", "json"}
    assert [len(examples(kind)) for kind in ("python", "sh", "js", "json")] == [4, 2, 1, 1]


def test_python_examples(run):
    first, many, tokens, agent = examples("python")
    out = run("python", first)
    assert out.splitlines()[-2].startswith("7 {") and out.splitlines()[-1].startswith("lion ")
    seven, error, three = run("python", many).splitlines()[-3:]
    assert (seven, three) == ("7", "3") and "picture" in error
    alike, found = run("python", tokens).splitlines()[-2:]
    (predicted, _), *_ = vit_demo.explore(LION).logit_lens(patches=True)[-1][5][5]
    assert alike == f"1.0 True {predicted}" and found.endswith(" []") and 0 < int(found.split()[0]) < 100
    pytest.importorskip("mcp", reason="the last example needs the extra `mcp`")
    assert run("python", agent).splitlines()[-1].startswith('{"label": "lion"')


@pytest.mark.skipif(not shutil.which("curl") or not shutil.which("bash"), reason="needs bash and curl")
def test_curl_examples(run):
    inside, uploaded = examples("sh")
    assert '"label": "7"' in run("sh", inside)
    out = run("sh", uploaded)
    assert out.startswith("event: complete") and '"label": "lion"' in out and ".png" in out


@pytest.mark.skipif(not shutil.which("node"), reason="needs node")
@pytest.mark.skipif(node_modules() is None, reason="needs `npm install --no-save @gradio/client`")
def test_javascript_example(run):
    assert run("js", examples("js")[0]).strip().splitlines()[-1] == "7"


def test_the_address_for_agents_is_the_one_that_is_served(page):
    (config,) = (json.loads(code) for code in examples("json"))
    path = config["mcpServers"]["vit_demo"]["url"].removeprefix("http://127.0.0.1:7860/")
    pytest.importorskip("mcp", reason="needs the extra `mcp`")
    with urlopen(f"{page.local_url}{path}schema") as answer:
        assert {tool["name"] for tool in json.load(answer)} >= {"explain_image", "predict"}


def test_the_limit_of_unfinished_calls_is_the_servers():
    assert f"{MAX_EVENTS_OF_ONE} unfinished calls" in " ".join(TEXT.split())


def test_the_tables_list_every_endpoint_and_parameter(page):
    with urlopen(f"{page.local_url}gradio_api/info") as answer:
        endpoints = json.load(answer)["named_endpoints"]
    rows = dict(re.findall(r"^\| `(/\w+)` \|([^|]*)\|", TEXT, re.MULTILINE))
    assert rows.keys() == endpoints.keys()
    for name, parameters in rows.items():
        wanted = [one["parameter_name"] for one in endpoints[name]["parameters"]]
        assert parameters.strip() in (", ".join(wanted), "as `/explain`"), name
    explained = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", TEXT, re.MULTILINE)
    every = {one["parameter_name"] for endpoint in endpoints.values() for one in endpoint["parameters"]}
    assert every == {name.strip("`") for cell in explained for name in cell.split(", ")}


def get(page, path: str):
    with urlopen(f"{page.local_url}{path}") as answer:
        return answer.read().decode()


def test_gradios_openapi_document_describes_every_endpoint(page):
    document = json.loads(get(page, "openapi.json"))
    endpoints = json.loads(get(page, "gradio_api/info"))["named_endpoints"]
    for name, endpoint in endpoints.items():
        assert f"/gradio_api/call{name}/{{event_id}}" in document["paths"]
        start = document["paths"][f"/gradio_api/call/v2{name}"]["post"]
        assert len(start["summary"]) > 40 and "Returns:" in start["description"]
        properties = start["requestBody"]["content"]["application/json"]["schema"]["properties"]
        for parameter in endpoint["parameters"]:
            sent = properties.pop(parameter["parameter_name"])
            for described in (sent, parameter["type"]):
                assert len(described["description"]) > 10
            assert sent.get("default") == parameter["parameter_default"]
        assert not properties


def test_results_follow_their_json_schemas(page, folder):
    client = Client(page.local_url, verbose=False)
    seven = handle_file(folder / "seven.png")
    more: dict[str, dict] = {
        "/labels": {"preset": "digits-tiny"},
        "/drop_patches": {"patches": [[0, 0]]},
        "/pca": {"remove_background": True},
    }
    endpoints = json.loads(get(page, "gradio_api/info"))["named_endpoints"]
    for name, endpoint in endpoints.items():
        about_a_picture = endpoint["parameters"][:1] and endpoint["parameters"][0]["parameter_name"] == "image"
        arguments = {"image": seven, "preset": "digits-tiny", "patch_size": 7} if about_a_picture else {}
        found = client.predict(api_name=name, **arguments, **more.get(name, {}))
        listed = list(found) if isinstance(found, tuple) else [found]
        for one, returned in zip(listed, endpoint["returns"], strict=True):
            if isinstance(one, str):
                assert Image.open(one).format == "PNG"  # the client downloads files
                continue
            jsonschema.validate(one, returned["type"])
            with pytest.raises(jsonschema.ValidationError):
                jsonschema.validate({"label": 7}, returned["type"])
    lens = endpoints["/logit_lens"]["returns"][0]["type"]
    jsonschema.validate(client.predict(seven, "digits-tiny", 7, True, api_name="/logit_lens"), lens)


def test_the_page_of_the_api_lists_every_endpoint_and_loads_nothing(page):
    text = get(page, "api")
    names = re.findall(r"<td><code>(/\w+)</code></td>", text)
    assert names == list(json.loads(get(page, "gradio_api/info"))["named_endpoints"])
    assert not re.search(r"<(img|link|iframe)|src=", text) and text.count("<script>") == 1, "which keeps the theme"
