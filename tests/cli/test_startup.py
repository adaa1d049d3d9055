"""Help, the table of presets and completion load nothing heavy; what they show is complete."""

import shutil
import subprocess
import sys

import pytest

import vit_demo
from vit_demo.cli import build_parser, main, options
from vit_demo.cli.parser import COMMANDS

HEAVY = {"torch", "torchvision", "numpy", "PIL", "matplotlib", "scipy", "gradio", "huggingface_hub", "safetensors"}

LIGHT = [["--help"], ["--version"], ["presets"], ["completion", "bash"], ["completion", "zsh"]]
LIGHT += [[command, "--help"] for command in COMMANDS]

# In one process: what one command imports is still there for the next, so the last check covers all.
SCRIPT = f"""
import sys
from vit_demo.cli import main
for arguments in {LIGHT}:
    try:
        main(arguments)
    except SystemExit:
        pass
    loaded = {HEAVY} & sys.modules.keys()
    assert not loaded, (arguments, loaded)
"""


def test_light_commands_import_no_heavy_library():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


PREDICT = """
import sys
import numpy as np
import vit_demo
picture = np.full((100, 100), 255, np.uint8)
picture[20:80, 45:55] = 0
assert vit_demo.explore(picture, "digits-tiny", 7).top(1)[0][0] == "1"
loaded = {"torch._dynamo", "sympy", "torchvision", "timm", "transformers", "gradio"} & sys.modules.keys()
assert not loaded, loaded
"""


def test_a_prediction_loads_neither_the_compiler_of_torch_nor_other_libraries():
    done = subprocess.run([sys.executable, "-c", PREDICT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_presets_are_listed(capsys):
    assert main(["presets"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(vit_demo.presets())


def test_the_methods_in_the_help_are_the_registered_ones():
    assert sorted(options.method_names()) == sorted(vit_demo.methods())


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_examples_that_parse(command, capsys):
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert stop.value.code == 0
    examples = capsys.readouterr().out.split("examples:\n")[1].splitlines()
    prefix = "  python -m vit_demo "
    assert examples and all(line.startswith(prefix + command) for line in examples)
    for line in examples:
        arguments = line.removeprefix(prefix).split(" > ")[0].split(" >> ")[0].split(" < ")[0]
        build_parser().parse_args(arguments.replace("'", "").split())


COMPLETE = """
source "$1"
COMP_WORDS=("${@:2}"); COMP_CWORD=$(( $# - 2 )); COMP_LINE="${*:2}"; COMP_POINT=${#COMP_LINE}
_shtab_vit_demo
echo "${COMPREPLY[@]}"
"""


@pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ([""], list(COMMANDS)),
        (["explain", "--preset", "digits-t"], ["digits-tiny"]),
        (["explain", "--method", "re"], ["relevance"]),
        (["compare", "--h"], ["--help"]),
        (["explain", "seve"], ["seven.png"]),
        (["explain", "--out", "o"], ["out"]),
    ],
)
def test_bash_completes(typed, offered, tmp_path, capsys):
    assert main(["completion", "bash"]) == 0
    script = tmp_path / "completion"
    script.write_text(capsys.readouterr().out)
    folder = tmp_path / "folder"
    (folder / "out").mkdir(parents=True)
    (folder / "seven.png").touch()
    command = ["bash", "-c", COMPLETE, "bash", str(script), "vit-demo", *typed]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    assert done.stdout.split() == offered


def test_zsh_gets_a_script_of_its_own(capsys):
    assert main(["completion", "zsh"]) == 0
    script = capsys.readouterr().out
    assert script.startswith("#compdef vit-demo") and "patch_dropping" in script and "photos-tiny" in script
