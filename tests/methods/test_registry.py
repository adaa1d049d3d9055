"""The registry of methods, and what the documentation says of them."""

import json
import re
from pathlib import Path

import pytest

from vit_demo.errors import InputError
from vit_demo.methods import METHODS, find_method

DOCS = (Path(__file__).parents[2] / "docs" / "explanations.md").read_text(encoding="utf-8")


def test_the_table_in_the_docs_lists_every_method():
    rows = re.findall(r"^\| `(\w+)` \| (yes|no) \|[^|]*\|[^|]*\| ([^|]*) \| (yes|no) \|", DOCS, flags=re.MULTILINE)
    assert {name: rest for name, *rest in rows} == {
        name: ["yes" if method.class_specific else "no", method.unit, "yes" if method.signed else "no"]
        for name, method in METHODS.items()
    }


@pytest.mark.parametrize("name", METHODS)
def test_every_method_has_a_section_in_the_docs(name):
    assert f"\n## {METHODS[name].docs}\n" in DOCS


def test_cheap_methods_and_those_without_a_class_come_first():
    assert list(METHODS) == [
        "attention", "rollout", "norm_attention", "naclip", "attnlrp", "grad_cam", "legrad", "libra_fullgrad",
        "relevance", "integrated_gradients", "local_surrogate", "occlusion",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("method", "options", "words"),
    [
        ("rollout", {"block": 0}, "rollout has no option 'block': choose from query"),
        ("attnlrp", {"gamma": 0}, "attnlrp has no option 'gamma': it has none"),
        ("attention", {"direction": "up"}, "no direction 'up': choose one of from, to"),
        ("occlusion", {"window": 0}, "window must be a whole number from 1 to 99, not 0"),
        ("occlusion", {"window": True}, "not True"),
        ("local_surrogate", {"budget": 10_001}, "from 6 to 10000"),
        ("local_surrogate", {"with_hint": 1}, "with_hint must be True or False, not 1"),
    ],
)
def test_wrong_options_are_refused_in_one_sentence(method, options, words):
    with pytest.raises(InputError, match=words):
        find_method(method).check_options(options)


def test_the_defaults_are_those_of_the_functions():
    defaults = {name: {o.name: o.default for o in method.options} for name, method in METHODS.items()}
    assert defaults["attention"] == {"block": -1, "head": None, "query": None, "direction": "from"}
    assert defaults["occlusion"] == {"window": 1} and defaults["attnlrp"] == {}
    assert defaults["local_surrogate"] == {"budget": 384, "seed": 0, "with_hint": True}
    for method in METHODS.values():
        known = json.loads(json.dumps(method.to_dict()))
        given = [(o["name"], o["default"], tuple(o.get("choices", ()))) for o in known["options"]]
        assert known["floor"] and given == [(o.name, o.default, o.choices) for o in method.options]
