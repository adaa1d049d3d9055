"""Which models a visitor may name."""

import pytest

from vit_demo.errors import PresetError
from vit_demo.web.catalog.visitor_presets import model_name

OWN = ["digits-tiny", "vit-b16", "yours-" + "a" * 22]
REPOSITORIES = {
    "org/name": "org/name",
    " org/name@v1.0 ": "org/name@v1.0",
    "https://huggingface.co/org/name/": "org/name",
    "hf.co/org/name": "org/name",
}
REFUSED = [
    None,
    3,
    "",
    "digits-none",
    "yours-",
    "org",
    "/org/name",
    "../name",
    "org/name/file",
    "https://evil.example/a",
]


@pytest.mark.parametrize("allowed", ["1", "0"])
def test_a_visitor_names_a_preset_and_if_allowed_a_repository(allowed, monkeypatch):
    monkeypatch.setenv("VIT_DEMO_CUSTOM_MODELS", allowed)
    assert [model_name(name) for name in OWN] == OWN
    if allowed == "1":
        assert {text: model_name(text) for text in REPOSITORIES} == REPOSITORIES
    for text in REFUSED if allowed == "1" else [*REFUSED, *REPOSITORIES]:
        with pytest.raises(PresetError):
            model_name(text)
