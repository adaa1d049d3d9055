"""The Dockerfile: structure, since no test can count on a Docker daemon; hadolint's rules where it is installed."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def instructions() -> list[tuple[str, str]]:
    """Each instruction with its arguments, continued lines joined."""
    text = re.sub(r"\\\n\s*", "", (ROOT / "Dockerfile").read_text(encoding="utf-8"))
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(line.split(maxsplit=1)[0], line.split(maxsplit=1)[1]) for line in lines]


def arguments(instructions: list[tuple[str, str]], name: str) -> list[str]:
    return [value for instruction, value in instructions if instruction == name]


def test_the_base_is_pinned_and_the_cpu_is_the_default(instructions):
    assert arguments(instructions, "FROM") == ["python:3.12-slim"]
    assert "TORCH_BACKEND=cpu" in arguments(instructions, "ARG")
    assert any("--torch-backend" in run and "requirements.txt" in run for run in arguments(instructions, "RUN"))
    assert all("--no-cache" in run for run in arguments(instructions, "RUN") if "install -r" in run)


def test_it_runs_without_privileges(instructions):
    names = [name for name, _ in instructions]
    assert arguments(instructions, "USER") == ["1000"]
    assert "RUN" not in names[names.index("USER") :] and "COPY" not in names[names.index("USER") :]
    assert "useradd --uid 1000" in " ".join(arguments(instructions, "RUN"))
    assert "ADD" not in names


def test_what_is_written_goes_to_the_volume_or_to_tmp(instructions):
    settings = dict(one.split("=", 1) for one in arguments(instructions, "ENV")[0].split())
    assert settings["HF_HOME"] in arguments(instructions, "VOLUME")
    assert settings["MPLCONFIGDIR"].startswith("/tmp/") and settings["PYTHONDONTWRITEBYTECODE"] == "1"
    assert settings["GRADIO_SERVER_NAME"] == "0.0.0.0"
    assert [settings["GRADIO_SERVER_PORT"]] == arguments(instructions, "EXPOSE")


def test_its_health_is_that_of_the_page(instructions):
    (check,) = arguments(instructions, "HEALTHCHECK")
    command = json.loads(check.partition("CMD ")[2])
    assert "http://127.0.0.1:7860/healthz" in command[-1]
    compile(command[-1], "healthcheck", "exec")
    assert json.loads(arguments(instructions, "CMD")[-1]) == ["python", "app.py"]


def test_everything_that_is_copied_is_there_and_not_ignored(instructions):
    ignored = (ROOT / ".dockerignore").read_text().split("\n")
    copied = [line.split()[0] for line in arguments(instructions, "COPY")]
    assert all((ROOT / name).exists() for name in copied)
    assert "*" in ignored and {line[1:] for line in ignored if line.startswith("!")} == set(copied)


HADOLINT = shutil.which("hadolint") or shutil.which("hadolint", path=Path(sys.executable).parent)


@pytest.mark.skipif(HADOLINT is None, reason="hadolint is not installed")
def test_hadolint_finds_nothing():
    done = subprocess.run([HADOLINT, "Dockerfile"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
