"""Every code block and command of the documents is run here, or named below with the reason why it is not.

``docs/api.md`` and ``docs/reference.md`` have tests of their own, which run theirs.
"""

import contextlib
import importlib.util
import io
import re
import shlex
import shutil
from functools import partial
from pathlib import Path

import gradio
import pytest
import torchvision
from PIL import Image

import vit_demo
from benchmarks.__main__ import BENCHMARKS
from recipes import __main__ as recipes
from vit_demo import cli
from vit_demo.web.catalog.example_digits import example_picture
from vit_demo.web.server import launch
from vit_demo.weights import PRESETS
from vit_demo.weights.checkpoints import read_record

from .weights.hub_server import served
from .words.word_models import word_files

ROOT = Path(__file__).parent.parent
ELSEWHERE = {"docs/api.md": "tests/web/api/test_api_documentation.py", "docs/reference.md": "tests/test_reference.py"}
DOCUMENTS = [
    path
    for pattern in ("*.md", "docs/**/*.md", "checkpoints/*.md", "benchmarks/*.md")
    for path in sorted(ROOT.glob(pattern))
    if str(path.relative_to(ROOT)) not in ELSEWHERE
]

NOT_RUN = {
    r"python -m venv .* && pip install -r requirements\.txt && python app\.py": "see tests/space/test_start.py",
    r"pip install (-r requirements\.txt|\.)": "installs; see tests/test_wheel.py",
    r"python -m venv .* && pip install -r requirements-dev\.txt && python -m pytest": "what CI itself runs",
    r"python -m pytest( -n 0| -m quick)?( tests/[\w/.]+)*": "these tests",
    r"ruff .*|mypy .*|lint-imports": "run by the tests of code quality",
    r"docker (build|run|ps|stop)\b.*": "needs a Docker daemon; see tests/test_dockerfile.py",
    r"serve run vit_demo\.serve:app( \w+=[\d.]+)*": "needs the extra `serve`; see tests/test_serve.py",
    r"pip install \"\.\[serve\]\"": "as above",
    r"pip install (vit_demo|\"vit_demo\[(app|mcp|serve)\]\")": "needs a registry; see tests/test_wheel.py",
    r"haproxy -f docs/haproxy/\w+\.cfg": "see tests/space/test_haproxy.py",
    r"python -m uvicorn .*": "does not end; see tests/web/test_serving.py",
    r"python -m benchmarks( NAME)?": "lists the benchmarks",
    r"(\w+=[\w/]+ )+python app\.py": "does not end; see tests/web/test_serving.py",
    r"pip install captum grad-cam( torchcam)?": "libraries that this one is compared with, where they are installed",
}
"""Commands that are not run, and why; their files and options are checked where there are any."""

LONG = {
    "train": "takes half a minute; see tests/training/test_small.py",
    "evaluate": "needs data",
    "serve": "does not end; see tests/web/test_serving.py",
}
"""Commands of ours whose arguments are parsed, and why they are not run."""


def blocks(*kinds: str) -> list:
    found = []
    for path in DOCUMENTS:
        text = path.read_text(encoding="utf-8")
        for number, (kind, code) in enumerate(re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)):
            if kind in kinds:
                found.append(pytest.param(code, id=f"{path.relative_to(ROOT)}-{number}"))
    return found


def commands() -> list:
    """Each command of a shell block, and each command between backticks."""
    found: dict[str, str] = {}
    for path in DOCUMENTS:
        text = path.read_text(encoding="utf-8")
        shell = re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        lines = [line for block in shell for line in re.sub(r"\\\n\s*", "", block).splitlines()]
        prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
        lines += [
            re.sub(r"\s+", " ", one) for one in re.findall(r"`((?:python|ruff|mypy|pip|docker)\s+-?[^`]*)`", prose)
        ]
        for line in lines:
            command = re.sub(r"(^|\s+)# .*", "", line).strip()
            if command:
                found.setdefault(command, str(path.relative_to(ROOT)))
    return [pytest.param(command, id=f"{document}: {command[:60]}") for command, document in found.items()]


@pytest.fixture(scope="module")
def address():
    """Of a running page."""
    page = launch("127.0.0.1", wait=False)
    yield page.local_url.rstrip("/")
    page.close()


@pytest.fixture
def words_hub(tmp_path):
    """A tiny network in the place of the preset that takes words."""
    with served(tmp_path / "cache") as server:
        server.repositories[vit_demo.presets()["tinyclip-8m"].repo] = word_files("clip", image_size=224, patch_size=16)
        yield


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """The working directory, with the pictures of the repository alone."""
    for name in ("docs/images", "vit_demo/web/examples"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("*.webp"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def folder(checkout):
    """The same with the reader's own pictures, which commands name."""
    tmp_path = checkout
    example_picture(7).save(tmp_path / "seven.png")
    Image.open(Path(gradio.__file__).parent / "media_assets" / "images" / "lion.jpg").save(tmp_path / "photo.jpg")
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "photo.jpg").write_bytes((tmp_path / "photo.jpg").read_bytes())
    return tmp_path


def pets(folder):
    """The reader's pictures of two classes."""
    for name, files in {"cat": ("cat", "tiger"), "dog": ("german-shepherd", "koala")}.items():
        (folder / "pets" / name).mkdir(parents=True)
        for file in files:
            shutil.copy(ROOT / "vit_demo" / "web" / "examples" / f"{file}.jpg", folder / "pets" / name)


def test_every_block_is_of_a_kind_that_is_run():
    kinds = {
        kind
        for path in DOCUMENTS
        for kind in re.findall(r"^```(\w+)\n.*?^```$", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    }
    assert kinds <= {"python", "sh"}, "a new kind of block needs a test"
    assert all((ROOT / test).is_file() and (ROOT / document).is_file() for document, test in ELSEWHERE.items())


@pytest.mark.parametrize("code", blocks("python"))
def test_python_runs_as_written(code, checkout, request, monkeypatch):
    if "org/name" in code or "from_pretrained(" in code:
        pytest.skip("needs a network; tests/weights/test_hub.py serves repositories")
    for library in ("captum", "pytorch_grad_cam", "torchcam"):
        if f"from {library}." in code or f"from {library} " in code:
            pytest.importorskip(library)
    if "torchvision.models.vit_b_16(" in code:  # with fewer and smaller blocks
        small = partial(torchvision.models.VisionTransformer, 224, 16, 2, 3, 48, 96)
        monkeypatch.setattr(torchvision.models, "vit_b_16", small)
    if "http://127.0.0.1:7860" in code:
        code = code.replace("http://127.0.0.1:7860", request.getfixturevalue("address"))
    if "tinyclip-8m" in code:
        request.getfixturevalue("words_hub")
    if '"photo.jpg"' in code:  # the reader's own
        request.getfixturevalue("folder")
    exec(compile(code, "example", "exec"), names := {"__name__": "example"})
    ex = names.get("ex")
    if isinstance(ex, vit_demo.Exploration) and ex.labels:
        assert ex.relevance().any(), "torchvision's new heads are 0, and so is every map by gradients"


@pytest.mark.parametrize("command", commands())
def test_command(command, folder, capsys, monkeypatch):
    if any(re.fullmatch(pattern, one) for pattern in NOT_RUN for one in (command, *command.split(" && "))):
        for name in re.findall(r"[\w./-]+\.(?:txt|py|cfg)\b", command):
            assert (ROOT / name).is_file()
        for argument in re.findall(r"--build-arg (\w+)=", command):
            assert f"ARG {argument}=" in (ROOT / "Dockerfile").read_text()
        for tests in re.findall(r"tests/[\w/.]+", command):
            assert (ROOT / tests).exists()
        return
    words = shlex.split(command)
    if "pets.safetensors" in words:
        pets(folder)
        if "teach" not in words:
            run_ours(["teach", "pets/", "--model", "photos-tiny", "--out", "pets.safetensors"], monkeypatch)
    if "vit_demo" in words and "-m" in words:
        run_ours(words[words.index("vit_demo") + 1 :], monkeypatch)
    elif words[0] == "vit-demo":
        run_ours(words[1:], monkeypatch)
    elif words[:3] == ["python", "-m", "recipes"]:
        recipes.build_parser().parse_args(words[3:])
    elif words[:2] == ["python", "-m"]:
        check_module(words[2], words[3:])
    elif words[:2] == ["python", "-c"]:
        with contextlib.chdir(ROOT):
            exec(compile(words[2], "example", "exec"), {})
        assert capsys.readouterr().out
    else:
        pytest.fail(f"run it here, or name it above with the reason why not: {command}")


def run_ours(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs a command of ours; one that takes too long, or a download, is only parsed."""
    for sign in (">", ">>", "<"):
        if sign in arguments:
            place = arguments.index(sign)
            _, name = arguments[place], arguments[place + 1]
            del arguments[place : place + 2]
            if sign == "<":
                monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(Path(name).read_bytes())))
    cli.build_parser().parse_args(arguments)
    from_hub = [name for name, preset in vit_demo.presets().items() if preset.is_downloaded] + ["org/name"]
    if arguments[0] in LONG or any(name in argument for name in from_hub for argument in arguments):
        return
    assert cli.main(arguments) == 0


def check_module(name: str, arguments: list[str]) -> None:
    """A module that can be run and has the options; running it needs data, or minutes."""
    if name == "benchmarks":
        module, function = BENCHMARKS[arguments[0]][0].split(".") if arguments else ("__main__", "main")
        name, start = f"benchmarks.{module}", f"def {function}("
    else:
        assert name.startswith(("scripts.", "vit_demo.")), name
        start = '__name__ == "__main__"'
    with contextlib.chdir(ROOT):
        found = importlib.util.find_spec(name)
    assert found and found.origin
    source = Path(found.origin).read_text(encoding="utf-8")
    assert start in source
    assert all(f'"{word}"' in source for word in arguments if word.startswith("--"))


def test_which_heads_matter_is_answered_in_ten_lines() -> None:
    _, _, after = (ROOT / "docs" / "python.md").read_text(encoding="utf-8").partition("## Heads\n")
    code = after.partition("```python\n")[2].partition("```")[0]
    assert 'head_effects("tabby cat", against="lion")' in code and len(list(filter(None, code.split("\n")))) <= 10


def test_what_readme_names_is_there_after_its_first_command():
    named = re.findall(r"[\w/.-]+\.(?:png|jpe?g|webp)", (ROOT / "README.md").read_text(encoding="utf-8"))
    written = {"cat.png"}
    assert [name for name in named if not (ROOT / name).is_file() and name not in written] == []


def test_readme_says_which_weights_were_trained_in_several_runs() -> None:
    bundled = [preset for preset in PRESETS.values() if preset.is_bundled]
    continued = {p.name for p in bundled if {"averaged", "start"} & set(read_record(p, p.default_patch_size))}
    readme = " ".join((ROOT / "README.md").read_text().split())
    (sentence,) = re.findall(r"[^.;,]*trained in several runs\.", readme)
    assert set(re.findall(r"`([\w-]+)`", sentence)) == continued
    assert "trained from scratch by this code" not in readme


def test_the_lines_beside_other_libraries_are_those_of_the_code():
    text = (ROOT / "docs" / "peers.md").read_text(encoding="utf-8")
    told = {
        name: int(lines)
        for name, lines in re.findall(r"^\| \[?([\w-]+)\]?(?:\(.*?\))? \| (\d+) \|", text, re.MULTILINE)
    }
    code = re.findall(r"^## ([\w-]+)\n\n```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    counted = {name: sum(bool(line.strip()) for line in block.splitlines()) for name, block in code}
    assert told == counted and len(told) == 4
