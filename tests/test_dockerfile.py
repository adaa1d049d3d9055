"""The Dockerfile: structure, since no test can count on a Docker daemon; hadolint's rules where it is installed."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def instructions() -> list[tuple[str, str]]:
    """Each instruction with its arguments, continued lines joined."""
    text = re.sub(r"\\\n\s*", "", (ROOT / "Dockerfile").read_text(encoding="utf-8"))
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(line.split(maxsplit=1)[0], line.split(maxsplit=1)[1]) for line in lines]


def arguments(instructions: list[tuple[str, str]], name: str) -> list[str]:
    return [value for instruction, value in instructions if instruction == name]


def test_the_base_and_all_packages_are_pinned_by_hash(instructions):
    (base,) = arguments(instructions, "FROM")
    assert re.fullmatch(r"python:3\.12-slim@sha256:[0-9a-f]{64}", base)
    assert "TORCH_BACKEND=" in arguments(instructions, "ARG")
    (install,) = (run for run in arguments(instructions, "RUN") if "install " in run and "pip" in run)
    packages, torch = install.split("&&")
    by_default, other = torch.split("else")
    assert "--require-hashes -r requirements.lock" in packages and "--no-cache-dir" in packages
    assert "--require-hashes -r requirements-torch.lock" in by_default and '-z "${TORCH_BACKEND}"' in by_default
    assert "--torch-backend" in other and "--no-cache" in other


def test_the_locked_packages_meet_the_requirements_and_have_hashes(instructions):
    torch = dict(re.findall(r"(torch\w*)==([^\s;]+)", " ".join(arguments(instructions, "RUN"))))
    locked = versions("requirements.lock")
    of_torch = versions("requirements-torch.lock")
    assert {name: of_torch[name] for name in ("torch", "torchvision")} == torch, "both builds have one version"
    assert {name: locked[name] for name in locked.keys() & of_torch} == {
        name: of_torch[name] for name in locked.keys() & of_torch
    }
    locked |= of_torch
    for line in (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines():
        requirement = Requirement(line)
        assert locked[canonicalize_name(requirement.name)] in requirement.specifier, line


def versions(lock: str) -> dict[str, str]:
    """The version of each package of a lock, all of which have hashes."""
    entries = re.sub(r"\\\n\s*", "", (ROOT / lock).read_text(encoding="utf-8")).splitlines()
    entries = [entry for entry in entries if not entry.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==\S+ (--hash=sha256:[0-9a-f]{64} ?)+", entry) for entry in entries)
    return {canonicalize_name(name): version for name, version in (e.split()[0].split("==") for e in entries)}


def test_the_documented_commands_take_privileges_away():
    text = re.sub(r"\\\n\s*", "", (ROOT / "docs" / "hosting.md").read_text(encoding="utf-8"))
    commands = [line for line in text.splitlines() if line.startswith("docker run")]
    flags = ("--cap-drop ALL", "--security-opt no-new-privileges", "--pids-limit", "--ulimit nofile=", "--read-only")
    assert len(commands) == 2 and all(flag in command for command in commands for flag in flags)


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
    copied = [name for line in arguments(instructions, "COPY") for name in line.split()[:-1]]
    assert all((ROOT / name).exists() for name in copied)
    assert "*" in ignored and {line[1:] for line in ignored if line.startswith("!")} == set(copied)


HADOLINT = shutil.which("hadolint") or shutil.which("hadolint", path=Path(sys.executable).parent)


@pytest.mark.skipif(HADOLINT is None, reason="hadolint is not installed")
def test_hadolint_finds_nothing():
    done = subprocess.run([HADOLINT, "Dockerfile"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
