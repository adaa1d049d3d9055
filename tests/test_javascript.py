"""The page's JavaScript: linted, and its logic tested by node's own test runner on numbers that Python writes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib import colormaps

from vit_demo.inference.engine import Engine
from vit_demo.inference.inputs import Source
from vit_demo.render.overlay import COARSE_PATCHES
from vit_demo.web.components.pad import example_picture
from vit_demo.web.components.stage import method_entries
from vit_demo.web.payload import encode, payload
from vit_demo.web.requests import ResultRequest

ROOT = Path(__file__).parent.parent
TESTS = sorted((ROOT / "tests" / "js").glob("*.test.js"))
NODE = shutil.which("node")
OLDEST_NODE = 20


def node() -> str:
    if NODE is None:
        pytest.skip("node is not installed")
    version = subprocess.run([NODE, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    if int(version.removeprefix("v").partition(".")[0]) < OLDEST_NODE:
        pytest.skip(f"node {version} is older than {OLDEST_NODE}")
    return NODE


def fixture() -> dict[str, Any]:
    """Arrays as Python encodes them, a payload, and what must come out of both."""
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    floats = np.array([0, -0.5, 1e-38, 3.4e38, np.pi], np.float32)
    maps = {"levels": np.array([0, 1, 254, 255], np.uint8), "peaks": np.array([0.25], np.float32)}
    result = Engine("cpu").explore(example_picture(3), "digits-tiny", 4).drop_patches([(2, 3), (0, 0)])
    request = ResultRequest(Source("a picture", lambda: None), "digits-tiny", 4, "crop")
    sent = payload(result, request)
    query = (4, 2)
    expected = {"classToken": result.attention(1, 2), "rollout": result.rollout()}
    for direction in ("from", "to"):
        for head in (-1, 2):
            shown = result.attention(1, None if head < 0 else head, query, direction)
            expected[f"{direction} {head}"] = shown
    magma = [[value, *(255 * np.array(colormaps["magma"](0.1 + 0.88 * value)[:3]))] for value in np.linspace(0, 1, 21)]
    return {
        "float16": {"encoded": encode(halves), "values": [json_number(value) for value in halves.astype(float)]},
        "float32": {"encoded": encode(floats), "values": floats.tolist()},
        "maps": {"encoded": {name: encode(array) for name, array in maps.items()}}
        | {name: array.tolist() for name, array in maps.items()},
        "payload": sent,
        "dropped": [0, 2 * result.grid[1] + 3],
        "blocks": sorted(int(block) for block in sent["trace"]),
        "query": query[0] * result.grid[1] + query[1],
        "expected": {name: values.ravel().tolist() for name, values in expected.items()},
        "magma": [[float(number) for number in row] for row in magma],
        "coarsePatches": COARSE_PATCHES,
        "methods": method_entries(),
    }


def json_number(value: float) -> float | str:
    return float(value) if np.isfinite(value) else str(float(value))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("js") / "fixture.json"
    path.write_text(json.dumps(fixture()))
    return path


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.name.removesuffix(".test.js"))
def test_node(path: Path, written: Path) -> None:
    command = [node(), "--test", "--test-reporter=spec", str(path)]
    environment = {"PATH": str(Path(node()).parent), "VIT_DEMO_FIXTURE": str(written)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False)
    report = done.stdout + done.stderr
    # The failures alone, at the end of the report, with node's own comparison of what was found and expected.
    assert done.returncode == 0, report[report.find("failing tests:") :]
    assert re.search(r"pass [1-9]", report), f"{path.name} holds no test"


def test_biome_finds_nothing() -> None:
    npx = shutil.which("npx")
    if npx is None:
        pytest.skip("npx is not installed")
    version = json.loads((ROOT / "package.json").read_text())["devDependencies"]["@biomejs/biome"]
    biome = [npx, "--yes", f"@biomejs/biome@{version}"]
    try:
        ready = subprocess.run(
            [*biome, "--version"], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
        )
    except subprocess.TimeoutExpired:
        pytest.skip("biome cannot be downloaded")
    if ready.returncode:
        pytest.skip(f"biome cannot be downloaded: {ready.stderr.strip()[-200:]}")
    done = subprocess.run(
        [*biome, "ci", "--colors=off", "--error-on-warnings"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
