"""The scripts of ``completion`` work in the shells themselves, where these are installed."""

import os
import pty
import select
import shutil
import subprocess

import pytest

from vit_demo.cli import COMMANDS, main

from ..asynchronous import PATIENCE

CASES = [
    (["explain", "--preset", "digits-t"], ["digits-tiny"]),
    (["explain", "--method", "local_"], ["local_surrogate"]),
    (["compare", "--h"], ["--help"]),
    (["explain", "seve"], ["seven.png"]),
    (["explain", "--out", "o"], ["out"]),
    (["completion", "z"], ["zsh"]),
    (["tra"], ["train"]),
]

BASH = """
source "$1"
COMP_WORDS=("${@:2}"); COMP_CWORD=$(( $# - 2 )); COMP_LINE="${*:2}"; COMP_POINT=${#COMP_LINE}
_shtab_vit_demo
echo "${COMPREPLY[@]}"
"""

ZSH = """
PROMPT='ready> '
unsetopt prompt_cr prompt_sp zle_bracketed_paste
fpath=({folder} $fpath)
autoload -U compinit && compinit -u -D
vit-demo() {{ print -r -- "typed: ${{(j: :)@}};" }}
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "files" / "out").mkdir(parents=True)
    (tmp_path / "files" / "seven.png").touch()
    return tmp_path / "files"


def script(shell, path, capsys):
    assert main(["completion", shell]) == 0
    path.write_text(capsys.readouterr().out)
    return path


@pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")
@pytest.mark.parametrize(("typed", "offered"), [([""], list(COMMANDS)), *CASES])
def test_bash(typed, offered, folder, capsys):
    path = script("bash", folder.parent / "completion", capsys)
    command = ["bash", "-c", BASH, "bash", str(path), "vit-demo", *typed]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    assert done.stdout.split() == offered


@pytest.mark.skipif(not shutil.which("fish"), reason="needs fish")
def test_fish(folder, capsys):
    path = script("fish", folder.parent / "vit-demo.fish", capsys)
    lines = [f"echo 'vit-demo {' '.join(typed)}'; complete -C 'vit-demo {' '.join(typed)}'" for typed, _ in CASES]
    command = ["fish", "--no-config", "-c", f"source {path}; " + "; ".join(lines)]
    home = os.environ | {"HOME": str(folder.parent), "XDG_CACHE_HOME": str(folder.parent)}
    done = subprocess.run(command, cwd=folder, env=home, capture_output=True, text=True, check=True)
    found: dict[str, list[str]] = {}
    for line in done.stdout.splitlines():
        if line.startswith("vit-demo "):
            offered = found[line] = []
        else:
            offered.append(line.split("\t")[0].rstrip("/"))
    assert found == {f"vit-demo {' '.join(typed)}": offered for typed, offered in CASES}


@pytest.mark.skipif(not shutil.which("zsh"), reason="needs zsh")
def test_zsh(folder, capsys):
    """Types into a terminal and presses tab, because zsh completes nowhere else."""
    script("zsh", folder.parent / "_vit-demo", capsys)
    (folder.parent / ".zshrc").write_text(ZSH.format(folder=folder.parent))
    master, slave = pty.openpty()
    settings = os.environ | {"ZDOTDIR": str(folder.parent), "TERM": "dumb", "HOME": str(folder.parent)}
    shell = subprocess.Popen(
        ["zsh", "-d", "-i"], cwd=folder, env=settings, stdin=slave, stdout=slave, stderr=slave, start_new_session=True
    )

    def read_until(words: str) -> str:
        text = ""
        while words not in text:
            assert select.select([master], [], [], PATIENCE)[0], text
            text += os.read(master, 4096).decode(errors="replace")
        return text

    try:
        read_until("ready> ")
        for typed, offered in CASES:
            os.write(master, f"vit-demo {' '.join(typed)}\t".encode())
            read_until(offered[0])
            os.write(master, b"\n")
            text = read_until(";")
            words = text[text.index("typed: ") + 7 : text.index(";")].replace("/", "").split()
            assert words == [*typed[:-1], *offered]
    finally:
        shell.kill()
        shell.wait()
        os.close(master)
        os.close(slave)
