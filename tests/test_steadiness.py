"""No test counts on how fast the machine is, or changes what other threads of its process use; see CONTRIBUTING."""

import ast
import functools
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from scripts import steady

from .environment import set_apart

TESTS = Path(__file__).parent
OWN = {"vit_demo", "recipes", "benchmarks"}
SLEEPS = {"sleep", "wait_for_timeout", "Timer"}
CLOCKS = {f"time.{name}" for name in ("time", "monotonic", "perf_counter", "process_time", "thread_time")}
WAITS = {"alarm", "join", "result", "set_default_timeout", "settimeout", "wait", "asyncio.wait_for"}
WITHOUT_PATIENCE = {"httpx.get", "httpx.post", "httpx.Client", "httpx.AsyncClient"}
"""They give up after five seconds if they are not told otherwise."""
IN_PAGE = re.compile(r"performance\.now|Date\.now|timeStamp|setTimeout|setInterval")
"""Clocks of a browser, in the scripts that tests give to a page."""
STATE = {"os.environ", "sys.modules", "sys.path"}
RESTORED = "change it by monkeypatch, which restores it"
CHANGES = {"update", "setdefault", "pop", "clear", "insert", "append", "remove"}

ALLOWED = {
    ("asynchronous.py", "time.sleep"): "delays on purpose",
    ("asynchronous.py", "time.monotonic"): "the only wait for a state, which gives up in the end",
    ("browser/stage_page.py", "asyncio.sleep"): "a reply of the server: work still goes on; the page asks again",
    ("browser/test_browser_random.py", "page.wait_for_timeout"): "clicks at random moments are what is tested",
    ("browser/choosing.py", "page.wait_for_timeout"): "how `until` and `a_moment` pause while the page goes on",
    ("browser/acts.py", "performance.now"): "a clock of the test's own",
    ("browser/acts.py", "setTimeout"): "a reply that is held until the test lets it go; what follows an event",
    ("browser/test_browser_camera.py", "performance.now"): "what the page's own clock has said to the page",
    ("browser/test_browser_camera.py", "setInterval"): "a camera that goes on",
    ("browser/test_browser_random.py", "setTimeout"): "replies that come later",
    ("browser/conftest.py", "os.environ"): "no network, for the whole run",
    ("web/guard/test_slow_requests.py", "asyncio.sleep"): "in no time: `run_in_no_time`",
    ("web/guard/test_metrics.py", "pace.wait"): "a weight",
    ("web/guard/test_uploads.py", "quota.wait"): "bytes",
    ("web/guard/test_uploads.py", "time.time"): "the age of files, which the file system has from that clock",
    ("web/guard/test_slow_requests.py", "time.monotonic"): "at least so long: whoever is slow passes",
    ("weights/test_labels.py", "time.thread_time"): "of one thread, and a hundredth of what each with each takes",
    ("weights/test_kept_networks.py", "time.thread_time"): "of one thread, a tenth of what a look at all would take",
    ("cli/test_bad_input.py", "sys.stdout"): "what the command line writes to",
    ("cli/test_explain.py", "sys.stdin"): "what the command line reads",
    ("cli/test_explain.py", "sys.stderr"): "what the command line writes to",
    ("cli/test_gallery.py", "sys.stderr"): "what the command line writes to",
    ("test_documentation.py", "sys.stdin"): "what the command line reads",
    ("test_benchmarks.py", "sys.argv"): "what the command line reads",
    ("recipes/test_commands.py", "sys.path"): "what an installation finds; no thread imports meanwhile",
    ("test_space.py", "sys.meta_path"): "imports of torch's compiler by another thread would be refused; there is none",
    ("inference/test_explainer.py", "threading.Thread.start"): "passes on what other threads start",
    ("web/guard/test_faults.py", "pathlib.Path.replace"): "passes on what is no upload",
}  # fmt: skip
"""Where a pattern stays, and why: a file, and what is called, changed or patched there."""
ASKED_BY_THE_TEST_ALONE = {
    "PIL.Image.Exif.load", "PIL.Image.open", "gradio.processing_utils.save_pil_to_cache",
    "gradio.routes.secure_url_stream_response", "huggingface_hub.constants",
    "huggingface_hub.file_download.http_get", "huggingface_hub.file_download.time",
    "huggingface_hub.utils._http.time",
    "huggingface_hub.utils._cache_manager.DeleteCacheStrategy.execute", "recipes.photo_outliers.ImageDraw.Draw",
    "timm.create_model", "torch", "torchvision.datasets.MNIST", "torchvision.models.vit_b_16",
}  # fmt: skip
"""What of libraries may be patched: no thread of a server calls it, unless the test asks it to."""


def name_of(node: ast.AST) -> str:
    """``a.b.c`` of names and attributes; of what is got from a call or an index, the last part."""
    if isinstance(node, ast.Attribute):
        return f"{inner}.{node.attr}" if (inner := name_of(node.value)) else node.attr
    return node.id if isinstance(node, ast.Name) else ""


def is_number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float) and node.value > 0


@functools.cache
def resolve(name: str) -> Any:
    """The object of a full name, or None."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            return functools.reduce(getattr, parts[end:], importlib.import_module(".".join(parts[:end])))
        except (ImportError, AttributeError):
            continue
    return None


def patched(node: ast.Call, names: dict[str, str]) -> str:
    """What of a library a call of ``setattr`` changes, by its full name; empty if it belongs to the package."""
    target, *rest = node.args
    if isinstance(target, ast.Constant):
        full, _, name = str(target.value).rpartition(".")
    else:
        start, dot, inner = name_of(target).partition(".")
        if start not in names:
            return ""  # what the test itself has made
        full = names[start] + dot + inner
        name = rest[0].value if isinstance(rest[0], ast.Constant) else "?"
    found = resolve(full)
    module = found.__name__ if isinstance(found, ModuleType) else getattr(found, "__module__", type(found).__module__)
    return "" if module.partition(".")[0] in OWN else f"{full}.{name}"


def imported(tree: ast.Module) -> dict[str, str]:
    """What the names stand for that a file imports from elsewhere."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for one in node.names:
                root = one.name.partition(".")[0]
                found[one.asname or root] = one.name if one.asname else root
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found |= {one.asname or one.name: f"{node.module}.{one.name}" for one in node.names}
    return found


def breaches(source: str) -> Iterator[tuple[int, str, str]]:
    """Where a file breaks a rule: the line, what is called, changed or patched, and what it should do instead."""
    tree = ast.parse(source)
    names = imported(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield from of_call(node, names)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            for clock in IN_PAGE.findall(node.value):
                yield node.lineno, clock, "let the page read a clock of the test's own: `CLOCK`"
        targets = getattr(node, "targets", [getattr(node, "target", None)])
        for target in targets if isinstance(node, ast.Assign | ast.AugAssign | ast.Delete) else ():
            if (place := name_of(target.value if isinstance(target, ast.Subscript) else target)) in STATE:
                yield node.lineno, place, RESTORED


def of_call(node: ast.Call, names: dict[str, str]) -> Iterator[tuple[int, str, str]]:
    called = name_of(node.func)
    place, _, last = called.rpartition(".")
    timeouts = [one.value for one in node.keywords if one.arg == "timeout"]
    positional = node.args if {called, last} & WAITS else []
    if last in SLEEPS and not any(isinstance(one, ast.Constant) and one.value == 0 for one in node.args):
        yield node.lineno, called, "wait for a state: `until`; for what must not happen: `a_moment`"
    elif called in CLOCKS:
        yield node.lineno, called, "give the code a clock of the test's own"
    elif any(map(is_number, [*timeouts, *positional])) or (called in WITHOUT_PATIENCE and not timeouts):
        yield node.lineno, called, "wait for PATIENCE, or without an end"
    elif (place in STATE and last in CHANGES) or called == "os.chdir":
        yield node.lineno, place, RESTORED
    elif last == "setattr" and place and (library := patched(node, names)):
        yield node.lineno, library, "patch the name in the package's own module"


def is_allowed(path: str, what: str) -> bool:
    return (path, what) in ALLOWED or any(f"{what}.".startswith(f"{one}.") for one in ASKED_BY_THE_TEST_ALONE)


def test_no_test_counts_on_speed_or_changes_what_others_use() -> None:
    found = [
        f"tests/{name}:{line} {what}: {instead}"
        for path in sorted(TESTS.rglob("*.py"))
        for line, what, instead in breaches(path.read_text(encoding="utf-8"))
        if (name := path.relative_to(TESTS).as_posix()) != "test_steadiness.py" and not is_allowed(name, what)
    ]
    assert not found, "\n".join(found)


def test_no_exception_is_left_without_need() -> None:
    texts = {name: (TESTS / name).read_text(encoding="utf-8") for name, _ in ALLOWED}
    found = {(name, what) for name, text in texts.items() for _, what, _ in breaches(text)}
    assert ALLOWED.keys() <= found


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("import time\ntime.sleep(1)", "time.sleep"),
        ("page.wait_for_timeout(300)", "page.wait_for_timeout"),
        ("threading.Timer(0.5, event.set).start()", "threading.Timer"),
        ("assert time.monotonic() - started < 3", "time.monotonic"),
        ("assert event.wait(10)", "event.wait"),
        ("page.locator('b').click(timeout=60_000)", "click"),
        ("httpx.get(address)", "httpx.get"),
        ("os.environ['A'] = 'b'", "os.environ"),
        ("sys.path.insert(0, 'x')", "sys.path"),
        ("monkeypatch.setattr('gradio.queueing.asyncio.sleep', sleep)", "gradio.queueing.asyncio.sleep"),
        ("import time as clocks\npatch.setattr(clocks, 'time', clock)", "time.time"),
        ("from vit_demo.training import small\npatch.setattr(small, 'time', clock)", None),
        ("page.evaluate('performance.now() - start')", "performance.now"),
        ("assert event.wait(PATIENCE) and not job.poll(0.0)", None),
        ("until(lambda: job.is_done)", None),
    ],
)  # fmt: skip
def test_each_pattern_is_found(line: str, what: str | None) -> None:
    assert [found for _, found, _ in breaches(line)] == [what] * (what is not None)


def test_nothing_that_the_user_has_set_is_used() -> None:
    """A model of the same name in the user's cache was taken for one that a test publishes."""
    users = {"HF_HUB_CACHE": "~/models", "HF_TOKEN": "hf_secret", "HF_HUB_OFFLINE": "1", "https_proxy": "http://proxy"}
    environment = users | {"GRADIO_ROOT_PATH": "/demo", "VIT_DEMO_PROXY": "1", "VIT_DEMO_ORDER": "7", "PATH": "/bin"}
    set_apart(environment, "folder")
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    assert environment == {"VIT_DEMO_ORDER": "7", "PATH": "/bin", "HF_HOME": "folder", **threads}


def test_runs_beside_busy_loops_say_what_fails_and_leave_no_loop(
    tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(steady.RUNS, "busy", (["-n", "0", "-p", "no:cacheprovider"], {}))
    loop = steady.LOOP
    monkeypatch.setattr(steady, "LOOP", "")  # it is tried alone
    (tmp_path / "test_a.py").write_text("def test_fine(): pass\ndef test_wrong(): assert 1 == 2")
    assert steady.main(["busy", "--out", str(tmp_path / "out"), "--tests", str(tmp_path)]) == 1
    said = capsys.readouterr().out
    assert "1 failed, 1 passed" in said and "test_a.py::test_wrong" in said
    assert "assert 1 == 2" in (tmp_path / "out" / "busy.txt").read_text()
    program = f"import os, subprocess, sys; subprocess.Popen([sys.executable, '-c', {loop!r}, str(os.getpid())])"
    subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)  # which waits for the loop, too
