"""A method in a new file of ``vit_demo/methods`` is offered everywhere, without being named anywhere else."""

import json

import numpy as np
import pytest
from gradio_client import Client, handle_file
from PIL import Image

import vit_demo
from vit_demo import methods
from vit_demo.cli import main
from vit_demo.web.catalog.method_docs import method_html
from vit_demo.web.server import launch

SOURCE = '''
from vit_demo.methods.registry import Option, register


@register(
    "brightness",
    title="Brightness",
    class_specific=True,
    cost="many passes",
    unit="standard deviations",
    options=[Option(name="power", kind="integer", bounds=(1, 4))],
)
def brightness(model, images, target, *, power=2, patch_size=None, kept_patches=None, progress=None):
    """The brightness of each patch, times the index of the class.

    A second paragraph, which is not shown.
    """
    p = patch_size or model.patch_size
    mean = images.mean(1).unflatten(2, (-1, p)).unflatten(1, (-1, p)).mean((2, 4))
    for done in (1, 2):
        progress is None or progress(done, 2)
    return target * (mean - mean.min()) ** power
'''


@pytest.fixture(scope="module", autouse=True)
def new_file(tmp_path_factory):
    folder = tmp_path_factory.mktemp("methods")
    (folder / "brightness.py").write_text(SOURCE)
    methods.__path__.append(str(folder))
    methods.import_all()
    yield
    methods.__path__.remove(str(folder))
    del methods.METHODS["brightness"]


@pytest.fixture(scope="module")
def result(three):
    return vit_demo.explore(three, "digits-tiny", patch_size=4)


@pytest.fixture(scope="module")
def page():
    page = launch("127.0.0.1", wait=False)
    yield page
    page.close()


@pytest.fixture(scope="module")
def client(page):
    return Client(page.local_url, verbose=False)


def expected(result, power=2):
    patches = result.pixels[0, 0].unflatten(1, (7, 4)).unflatten(0, (7, 4)).mean((1, 3)).numpy()
    return result.target() * (patches - patches.min()) ** power


def test_python_computes_its_map_and_tests_it(result):
    heatmap = result.heatmap("brightness")
    np.testing.assert_allclose(heatmap, expected(result), atol=1e-5)
    np.testing.assert_allclose(result.heatmap("brightness", power=3), expected(result, 3), atol=1e-5)
    np.testing.assert_allclose(result.heatmap("brightness", "6"), 2 * heatmap, atol=1e-5)
    reported = []
    result.heatmap("brightness", progress=lambda *counts: reported.append(counts))
    assert reported == [(1, 2), (2, 2)]
    assert result.faithfulness("brightness").deletion_area == result.faithfulness(heatmap).deletion_area
    assert len(result.randomization("brightness")) == result.preset.num_blocks + 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"window": 3}, "brightness has no option 'window': choose from power"),
        ({"power": 5}, "power must be a whole number from 1 to 4, not 5"),
        ({"power": 2.0}, "power must be a whole number"),
    ],
)
def test_its_options_are_checked(result, options, words):
    with pytest.raises(vit_demo.InputError, match=words):
        result.heatmap("brightness", **options)


def test_it_is_listed_after_the_cheaper_and_the_class_free_ones():
    names = list(vit_demo.methods())
    assert names.index("rollout") < names.index("relevance") < names.index("brightness")
    method = vit_demo.methods()["brightness"]
    assert (method.title, method.class_specific, method.unit) == ("Brightness", True, "standard deviations")
    assert method.description == "The brightness of each patch, times the index of the class."
    assert method.to_dict()["options"] == [{"name": "power", "kind": "integer", "default": 2, "bounds": [1, 4]}]


def test_the_command_line_draws_it(three, result, tmp_path):
    command = ["explain", str(three), "--preset", "digits-tiny", "--patch-size", "4", "--method", "brightness"]
    assert main([*command, "--out", str(tmp_path)]) == 0
    shown = np.asarray(Image.open(tmp_path / "three-brightness.png"))
    assert np.array_equal(shown, np.asarray(result.overlay(result.heatmap("brightness"))))


def test_an_unknown_method_is_answered_with_all_names(three, capsys):
    assert main(["explain", str(three), "--method", "magic"]) == 2
    error = capsys.readouterr().err
    assert all(name in error for name in vit_demo.methods())


def test_the_api_lists_and_computes_it(client, three, result):
    assert client.predict(api_name="/methods")[-1]["name"] in vit_demo.methods()
    assert "brightness" in [method["name"] for method in client.predict(api_name="/methods")]
    found = client.predict(handle_file(three), "digits-tiny", 4, "brightness", -1, -1, -1, -1, "", api_name="/explain")
    np.testing.assert_allclose(found["map"], result.heatmap("brightness"), atol=1e-5)
    assert found["class_specific"] is True


def test_the_page_offers_it(page):
    (stage,) = [block for block in page.blocks.values() if block.elem_id == "stage"]
    _, _, constants = stage.get_config()["js_on_load"].partition('"registered": ')
    entries, _ = json.JSONDecoder().raw_decode(constants)
    assert [entry["name"] for entry in entries] == list(vit_demo.methods())
    entry = next(entry for entry in entries if entry["name"] == "brightness")
    assert entry["title"] == "Brightness" and entry["class_specific"] and entry["many_passes"]


def test_until_it_has_a_section_in_the_docs_its_docstring_explains_it():
    html = method_html("brightness")
    assert "The brightness of each patch, times the index of the class." in html and "second paragraph" not in html


def test_a_name_can_be_registered_once_and_an_option_must_be_a_parameter():
    with pytest.raises(ValueError, match="a method 'rollout' already"):
        methods.register("rollout", title="", class_specific=False, cost="trace", unit="")(lambda trace: trace)
    option = methods.Option(name="speed", kind="flag")
    with pytest.raises(ValueError, match="no parameter 'speed'"):
        methods.register("new", title="", class_specific=False, cost="trace", unit="", options=[option])(lambda x: x)
    assert "new" not in vit_demo.methods()
