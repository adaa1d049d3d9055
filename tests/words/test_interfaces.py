"""Words in the requests of the page, the API, and the command line."""

import base64
import json
import threading

import gradio as gr
import numpy as np
import pytest
from PIL import Image

import vit_demo
from vit_demo.cli import main
from vit_demo.service.engine import _engines, get_engine
from vit_demo.service.source import Source
from vit_demo.web.api import endpoints as api
from vit_demo.web.catalog.example_photos import EXAMPLE_PHOTOS

from ..asynchronous import run
from ..replies import complete
from .word_models import word_files

LION = str(EXAMPLE_PHOTOS["lion"].path)
NAME = "someone/words"


@pytest.fixture(params=["clip", "siglip"])
def words_hub(request, hub):
    name = f"someone/{request.param}-words"  # replies are kept by name
    hub.repositories[name] = word_files(request.param)
    _engines.clear()
    yield name
    _engines.clear()


def source(name=NAME, **fields):
    return {"example": "lion", "preset": name, "patch_size": 8, "fit": "crop", "dropped": [], **fields}


def test_a_request_of_the_page_has_its_words(words_hub):
    found = complete({"kind": "result", "source": source(words_hub, words=["a cat", "lion"])})["result"]
    expected = vit_demo.explore(LION, words_hub, labels=["a cat", "lion"])
    assert sorted(found["predictions"]["labels"]) == sorted(expected.labels)
    assert found["source"]["words"] == ["a cat", "lion"] and "word" in found["note"]
    values = complete(
        {"kind": "map", "source": source(words_hub, words=["a cat", "lion"]), "method": "legrad", "label": 1}
    )
    shown = np.frombuffer(base64.b64decode(values["result"]["map"]), np.float32)
    np.testing.assert_allclose(shown, expected.heatmap("legrad", "lion").ravel(), atol=1e-6)
    assert "words" not in complete({"kind": "result", "source": source(words_hub)})["result"]["source"]


@pytest.mark.parametrize(
    "words",
    [3, {"a": 1}, [3], [["a"]], [""], ["  "], ["x" * 301], ["a", "a"], [f"w{i}" for i in range(51)], ["a\nb"],
     ["\ud800"], "x" * 10_000],
)  # fmt: skip
def test_words_of_a_hostile_request_are_refused_and_the_next_works(hub, words):
    hub.repositories[NAME] = word_files("clip")
    _engines.clear()
    reply = complete({"kind": "result", "source": source(words=words)})
    assert "result" not in reply and len(reply["error"]) < 200
    assert "result" in complete({"kind": "result", "source": source(words=["a cat"])})
    _engines.clear()


def test_the_class_beside_one_word_may_be_typed(words_hub):
    reply = complete({"kind": "result", "source": source(words_hub, words=["(no words)", "lion"])})
    assert "lion" in reply["result"]["predictions"]["labels"]


def test_a_model_of_fixed_classes_refuses_words():
    sent = {"example": "lion", "preset": "photos-tiny", "patch_size": 12, "fit": "crop", "dropped": []}
    reply = complete({"kind": "result", "source": {**sent, "words": ["a dragon"]}})
    assert "photos-tiny knows 50 classes" in reply["error"]
    assert "result" in complete({"kind": "result", "source": {**sent, "words": ["lion"]}})


def test_visitors_with_different_words_get_their_own(words_hub):
    engine = get_engine()
    preset = engine.prepare(words_hub).result()
    lists = [[f"word {i}", f"other {i}", "lion"] for i in range(8)]
    found: dict[int, np.ndarray] = {}

    def ask(i: int) -> None:
        chosen = preset.with_words(lists[i])
        found[i] = engine.explore_source(Source.of(LION), chosen, 8).heatmap("relevance", "lion")

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i, words in enumerate(lists):
        expected = vit_demo.explore(LION, words_hub, labels=words).relevance("lion")
        np.testing.assert_allclose(found[i], expected, atol=1e-6)


def test_other_words_ask_for_no_other_image_pass_whatever_their_number(words_hub):
    engine = get_engine()
    preset, source = engine.prepare(words_hub).result(), Source.of(LION)
    first = engine.explore_source(source, preset, 8)
    passes: list[int] = []
    tower = engine.model(preset, 8).module.vision_model
    handle = tower.register_forward_hook(lambda *_: passes.append(1))
    for words in (["lion", "a cat"], ["lion"], [f"word {i}" for i in range(5)]):
        found = engine.explore_source(source, preset.with_words(words), 8)
        assert passes == [] and found.labels[: len(words)] == tuple(words)
        expected = vit_demo.explore(LION, words_hub, labels=words)
        np.testing.assert_allclose(found.logits, expected.logits, atol=1e-4)
    assert first.labels == ("a lion", "a cat", "a rock")
    dropped = engine.explore_source(source, preset.with_words(["lion", "a cat"]), 8, dropped=((0, 0),))
    handle.remove()
    expected = vit_demo.explore(LION, words_hub, labels=["lion", "a cat"]).drop_patches([(0, 0)])
    np.testing.assert_allclose(dropped.logits, expected.logits, atol=1e-4)
    assert passes and not np.allclose(dropped.logits, found.logits[:2])


def test_the_api_takes_words(words_hub, upload):
    sent = upload(Image.open(LION))
    found = run(api.predict(sent, words_hub, 0, "a cat, lion"))
    expected = vit_demo.explore(LION, words_hub, labels=["a cat", "lion"])
    assert {one["label"] for one in found["confidences"]} == {"a cat", "lion"} == set(found["labels"])
    explained = run(api.explain(sent, words_hub, 0, "naclip", -1, -1, -1, -1, "lion", "", "a cat, lion"))
    np.testing.assert_allclose(explained["map"], expected.heatmap("naclip", "lion"), rtol=0.3, atol=0.05)
    with pytest.raises(gr.Error, match="at most 50 words"):
        run(api.predict(sent, words_hub, 0, ",".join(f"w{i}" for i in range(51))))
    with pytest.raises(gr.Error, match="photos-tiny knows 50 classes"):
        run(api.predict(sent, "photos-tiny", 0, "a dragon"))


def test_words_alone_choose_the_model(monkeypatch, upload):
    named: list[str] = []
    monkeypatch.setattr("vit_demo.web.api.registration.get_preset", lambda name: named.append(name) or 1 / 0)
    with pytest.raises(gr.Error):
        run(api.predict(upload(Image.open(LION)), "", 0, "a dog"))
    assert named == ["tinyclip-8m"]


def test_the_command_line_takes_words(words_hub, capsys, tmp_path):
    command = ["explain", LION, "--preset", words_hub, "--labels", "a cat, lion", "--json", "--method", "legrad"]
    assert main([*command, "--label", "lion"]) == 0
    found = json.loads(capsys.readouterr().out)
    expected = vit_demo.explore(LION, words_hub, labels=["a cat", "lion"])
    np.testing.assert_allclose(found["maps"]["legrad"]["values"], expected.heatmap("legrad", "lion"), atol=1e-6)
    assert main([*command, "--template", "a {}"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert sorted(found["labels"]) == ["a cat", "lion"]
    assert main(["explain", LION, "--preset", "photos-tiny", "--labels", "a dragon"]) == 2
    assert "photos-tiny knows 50 classes" in capsys.readouterr().err


def test_offline_without_weights_one_sentence(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    assert main(["explain", LION, "--labels", "a cat, a lion"]) == 2
    error = capsys.readouterr().err.strip()
    assert "\n" not in error and "photos-tiny" in error
