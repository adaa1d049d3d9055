"""A default changed in ``defaults.py`` changes everywhere."""

import json
import subprocess
import sys

CHANGED = {
    "NUM_RANDOM_ORDERS": 20,
    "NUM_STEPS": 6,
    "OPACITY": 0.3,
    "DEFAULT_METHOD": "attnlrp",
    "CLASSLESS_METHOD": "attention",
    "DIRECTIONS": ["to", "from"],
}

READ = """
import argparse, inspect, json, sys
from vit_demo import defaults

for name, value in json.loads(sys.argv[1]).items():
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
found = {
    "NUM_RANDOM_ORDERS": [default(f, "seeds") for f in (Exploration.faithfulness, metrics.faithfulness)],
    "NUM_STEPS": [default(f, "steps") for f in (Exploration.faithfulness, metrics.faithfulness)],
    "OPACITY": [default(f, "alpha") for f in (Exploration.overlay, render.overlay)],
    "DEFAULT_METHOD": [
        default(f, "method") for f in (Exploration.faithfulness, Exploration.enough, Exploration.needed)
    ],
    "CLASSLESS_METHOD": [method.name for method in chosen],
    "DIRECTIONS": [DIRECTION.choices],
}
found["DEFAULT_METHOD"] += [method.name for method in other]
found["NUM_RANDOM_ORDERS"].append(constants()["numOrders"])
print(json.dumps(found))
"""


def test_a_default_is_a_fact_of_one_file():
    done = subprocess.run(
        [sys.executable, "-c", READ, json.dumps(CHANGED)],
        capture_output=True,
        text=True,
        check=True,
    )
    for name, values in json.loads(done.stdout).items():
        assert values == [CHANGED[name]] * len(values), name
