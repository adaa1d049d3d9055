"""What is imported when, and in which order: in one process, because importing torch takes seconds."""

import subprocess
import sys

from vit_demo.cli import COMMANDS

LIGHT = [["--help"], ["--version"], ["presets"], *([name, "--help"] for name in COMMANDS)]

IMPORTS = [
    "import vit_demo",
    "import vit_demo.methods, vit_demo",
    "import vit_demo; from vit_demo import methods",
    "from vit_demo.methods.relevance import relevance; import vit_demo",
    "import vit_demo; vit_demo.methods(); import vit_demo.methods.registry",
    "import vit_demo.service.engine, vit_demo; vit_demo.explore",
    "from vit_demo import *; import vit_demo; assert methods() == vit_demo.methods()",
]

CHANGED = {
    "NUM_RANDOM_ORDERS": 20,
    "NUM_STEPS": 6,
    "OPACITY": 0.3,
    "DEFAULT_METHOD": "attnlrp",
    "CLASSLESS_METHOD": "attention",
    "DIRECTIONS": ["to", "from"],
}

# What one part imports is still there for the next, so each may load more than the one before.
PARTS = {
    "the package is imported without torch": """
import vit_demo
vit_demo.PresetError
assert not sys.modules.keys() & {"torch", "gradio", "numpy", "PIL", "matplotlib"}
""",
    "help and the table of presets load nothing heavy": f"""
from vit_demo.cli import main
heavy = {{"torch", "torchvision", "numpy", "PIL", "matplotlib", "scipy", "gradio", "huggingface_hub", "safetensors"}}
for arguments in {LIGHT}:
    try:
        main(arguments)
    except SystemExit:
        pass
    assert not (loaded := heavy & sys.modules.keys()), (arguments, loaded)
""",
    "a prediction loads neither the compiler of torch nor other libraries, and a notebook no gradio": """
import numpy as np
import vit_demo
picture = np.full((100, 100), 255, np.uint8)
picture[20:80, 45:55] = 0
found = vit_demo.explore(picture, "digits-tiny", patch_size=7)
assert found.top(1)[0][0] == "1"
unused = {"torch._dynamo", "sympy", "torchvision", "timm", "transformers", "gradio", "scipy.cluster", "scipy.spatial"}
assert not (loaded := unused & sys.modules.keys()), loaded
assert len(found._repr_html_()) > 10_000 and "gradio" not in sys.modules
""",
    "every name is there, and methods is function and package, whatever is imported first": f"""
for imports in {IMPORTS}:
    forget()
    names = {{}}
    exec(imports, names)
    vit_demo = names["vit_demo"]
    assert list(vit_demo.methods()) == vit_demo.list_methods() and "attention" == vit_demo.list_methods()[0], imports
    assert vit_demo.methods.rollout.__name__ == "rollout", imports
for name in vit_demo.__all__:
    getattr(vit_demo, name)
assert set(vit_demo.__all__) <= set(dir(vit_demo)) and not hasattr(vit_demo, "nothing")
assert vit_demo.model.ViT and vit_demo.metrics.faithfulness
""",
    "a default changed in defaults.py changes everywhere": f"""
import argparse, inspect
forget()
from vit_demo import defaults

changed = {CHANGED}
for name, value in changed.items():
    setattr(defaults, name, value)

from vit_demo import metrics, render
from vit_demo.cli import parser
from vit_demo.inference.exploration import Exploration
from vit_demo.methods.registry import DIRECTION
from vit_demo.web.frontend.constants import constants


def default(function, name):
    return inspect.signature(function).parameters[name].default


options = argparse.Namespace(method=None, label=None, against=None)
chosen, other = (parser.chosen_methods(options, has_classes=has) for has in (False, True))
orders = [default(f, "seeds") for f in (Exploration.faithfulness, metrics.faithfulness)]
methods = [default(f, "method") for f in (Exploration.faithfulness, Exploration.enough, Exploration.needed)]
found = {{
    "NUM_RANDOM_ORDERS": [*orders, constants()["numOrders"]],
    "NUM_STEPS": [default(f, "steps") for f in (Exploration.faithfulness, metrics.faithfulness)],
    "OPACITY": [default(f, "alpha") for f in (Exploration.overlay, render.overlay)],
    "DEFAULT_METHOD": [*methods, *(method.name for method in other)],
    "CLASSLESS_METHOD": [method.name for method in chosen],
    "DIRECTIONS": [list(DIRECTION.choices)],
}}
for name, values in found.items():
    assert values == [changed[name]] * len(values), (name, values)
""",
}

PROGRAM = f"""
import sys, traceback

def forget():
    for name in [name for name in sys.modules if name.split(".")[0] == "vit_demo"]:
        del sys.modules[name]

failed = []
for part, code in {PARTS}.items():
    try:
        exec(code, {{"sys": sys, "forget": forget}})
    except Exception:
        failed.append(f"{{part}}: {{traceback.format_exc()}}")
sys.exit("".join(failed) or 0)
"""


def test_what_is_imported_when_and_in_which_order():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
