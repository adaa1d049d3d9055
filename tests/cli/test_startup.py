"""Help and the table of presets load nothing heavy; what they show is complete."""

import shlex
import subprocess
import sys

import pytest

import vit_demo
from vit_demo.cli import COMMANDS, build_parser, main
from vit_demo.cli.parser import method_names

HEAVY = {"torch", "torchvision", "numpy", "PIL", "matplotlib", "scipy", "gradio", "huggingface_hub", "safetensors"}

LIGHT = [["--help"], ["--version"], ["presets"], *([name, "--help"] for name in COMMANDS)]

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
found = vit_demo.explore(picture, "digits-tiny", patch_size=7)
assert found.top(1)[0][0] == "1"
unused = {"torch._dynamo", "sympy", "torchvision", "timm", "transformers", "gradio", "scipy.cluster", "scipy.spatial"}
loaded = unused & sys.modules.keys()
assert not loaded, loaded
assert len(found._repr_html_()) > 10_000 and "gradio" not in sys.modules
"""


def test_a_prediction_loads_neither_the_compiler_of_torch_nor_other_libraries_and_a_notebook_no_gradio():
    done = subprocess.run([sys.executable, "-c", PREDICT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_presets_are_listed(capsys):
    assert main(["presets"]) == 0
    lines = capsys.readouterr().out.splitlines()
    sources = {line.split()[0]: line.split()[-1] for line in lines}
    assert list(sources) == list(vit_demo.presets())
    assert sources["photos-tiny"] == "bundled"
    assert sources["vit-ti16"] == "timm/vit_tiny_patch16_224.augreg_in21k_ft_in1k"


def test_the_methods_in_the_help_are_the_registered_ones(capsys):
    assert sorted(vit_demo.list_methods()) == method_names()
    with pytest.raises(SystemExit):
        main(["explain", "--help"])
    assert f"(default: libra_fullgrad): {', '.join(method_names())}" in " ".join(capsys.readouterr().out.split())


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
        build_parser().parse_args(shlex.split(arguments))
