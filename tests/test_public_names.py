"""The names of ``vit_demo``, imported in several orders, because the order matters."""

import subprocess
import sys

IMPORTS = [
    "import vit_demo",
    "import vit_demo.methods, vit_demo",
    "import vit_demo; from vit_demo import methods",
    "from vit_demo.methods.relevance import relevance; import vit_demo",
    "import vit_demo; vit_demo.methods(); import vit_demo.methods.registry",
    "import vit_demo.service.engine, vit_demo; vit_demo.explore",
    "from vit_demo import *; import vit_demo; assert methods() == vit_demo.methods()",
]

# One process, because importing torch takes seconds; each time the package is imported anew.
EACH = f"""
import sys
for imports in {IMPORTS}:
    for name in [name for name in sys.modules if name.split(".")[0] == "vit_demo"]:
        del sys.modules[name]
    names = {{}}
    exec(imports, names)
    vit_demo = names["vit_demo"]
    assert list(vit_demo.methods()) == vit_demo.list_methods() and "attention" == vit_demo.list_methods()[0], imports
    assert vit_demo.methods.rollout.__name__ == "rollout", imports
for name in vit_demo.__all__:
    getattr(vit_demo, name)
assert set(vit_demo.__all__) <= set(dir(vit_demo)) and not hasattr(vit_demo, "nothing")
assert vit_demo.model.ViT and vit_demo.metrics.faithfulness
"""


def run(script: str) -> None:
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_package_is_imported_without_torch():
    heavy = {"torch", "gradio", "numpy", "PIL", "matplotlib"}
    run(f"import sys, vit_demo; assert not sys.modules.keys() & {heavy}; vit_demo.PresetError")


def test_every_name_is_there_and_methods_is_function_and_package_whatever_is_imported_first():
    run(EACH)
