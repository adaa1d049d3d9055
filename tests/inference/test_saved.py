"""Results as JSON values, rows, pages and files: what is read again is what was saved, and nothing else is read."""

import json
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file

import vit_demo
from vit_demo.errors import InputError, LabelError

from ..trace.networks import own, timm_network

PIXELS = torch.randn(3, 32, 32, generator=torch.Generator().manual_seed(0))


def pooled() -> torch.nn.Module:
    return timm_network("vision_transformer.VisionTransformer", global_pool="map", class_token=False)


@pytest.mark.parametrize("make", [own, pooled])
@pytest.mark.parametrize("drops", [False, True])
def test_a_saved_result_is_the_same_without_the_network(make, drops, tmp_path):
    module = make()
    ex = vit_demo.explore(PIXELS, module)
    ex = ex.drop_patches([(0, 1), (3, 3)]) if drops else ex
    ex.save(path := tmp_path / "result.safetensors")
    found = vit_demo.load_result(path)
    assert found.to_dict() == ex.to_dict() and found.preset.config == ex.preset.config
    assert torch.equal(found.pixels, ex.pixels) and np.array_equal(found.logits, ex.logits)
    for a, b in ((found.image, ex.image), (found.photo, ex.photo)):
        assert a.mode == b.mode and a.tobytes() == b.tobytes()
    assert found.geometry == ex.geometry
    for block in range(3):
        np.testing.assert_array_equal(found.attention(block, query=(1, 1)), ex.attention(block, query=(1, 1)))
    np.testing.assert_array_equal(found.attention(), ex.attention())
    np.testing.assert_array_equal(found.rollout(), ex.rollout())
    with pytest.raises(InputError, match="model="):
        found.relevance()
    again = vit_demo.load_result(path, module)
    np.testing.assert_array_equal(again.relevance(), ex.relevance())
    assert np.array_equal(again.drop_patches([(2, 2)]).logits, ex.drop_patches([(2, 2)]).logits)


def test_a_result_of_a_preset_loads_its_network_when_it_is_needed(tmp_path):
    digit = Image.new("L", (28, 28))
    digit.paste(255, (12, 4, 15, 24))
    ex = vit_demo.explore(digit, "digits-tiny", patch_size=7)
    ex.save(tmp_path / "one")
    found = vit_demo.load_result(tmp_path / "one")
    assert found.patch_size == 7 and found.photo is None
    np.testing.assert_array_equal(found.relevance("1"), ex.relevance("1"))


def test_a_result_that_an_earlier_version_saved_has_no_source(tmp_path):
    vit_demo.explore(PIXELS, own()).save(path := tmp_path / "result")
    about = json.loads(_metadata(path)["about"])
    del about["source"]
    save_file(load_file(path), path, {"format": "vit_demo result 1", "about": json.dumps(about)})
    assert vit_demo.load_result(path).source is None


def test_what_is_no_saved_result_is_refused_in_one_sentence(tmp_path):
    ex = vit_demo.explore(PIXELS, own())
    ex.save(path := tmp_path / "result")
    tensors = load_file(path)
    about = json.loads(_metadata(path)["about"])
    cases = {
        "missing": None,
        "text": b"no file of tensors",
        "cut": path.read_bytes()[:-100],
        "other": ({"x": torch.zeros(2)}, {}),
        "no pixels": ({k: v for k, v in tensors.items() if k != "pixels"}, about),
        "empty pixels": (tensors | {"pixels": tensors["pixels"][:0].clone()}, about),
        "two pictures": (tensors | {"pixels": tensors["pixels"].repeat(2, 1, 1, 1)}, about),
        "short attention": (tensors | {"q.1": tensors["q.1"][:, :, :-1].clone()}, about),
        "more classes": (tensors | {"logits": torch.zeros(9)}, about),
        "config": (tensors, about | {"preset": about["preset"] | {"config": {"depth": -1}}}),
        "fields": (tensors, about | {"preset": about["preset"] | {"__class__": "x"}}),
        "grid": (tensors, about | {"grid": [1000, 1000]}),
        "geometry": (tensors, about | {"geometry": {"box": 1}}),
        "list": (tensors, [1]),
    }
    for name, content in cases.items():
        broken = tmp_path / f"{name}.x"
        if isinstance(content, bytes):
            broken.write_bytes(content)
        elif content is not None:
            metadata = {"format": "vit_demo result 1", "about": json.dumps(content[1])} if content[1] else {}
            save_file(content[0], broken, metadata)
        with pytest.raises(InputError, match=f"^'{name}.x' is not a result") as raised:
            vit_demo.load_result(broken)
        assert str(tmp_path) not in str(raised.value)
    with pytest.raises(InputError, match="cannot be written"):
        ex.save(tmp_path / "no folder" / "result")


def _metadata(path: Path) -> dict[str, str]:
    size = int.from_bytes(path.read_bytes()[:8], "little")
    found: dict[str, str] = json.loads(path.read_bytes()[8 : 8 + size])["__metadata__"]
    return found


def test_rows_of_a_table_are_of_their_pictures():
    module = own()
    results = {"a.jpg": vit_demo.explore(PIXELS, module), "b.jpg": vit_demo.explore(-PIXELS, module)}
    rows = vit_demo.table(results)
    assert [row["picture"] for row in rows] == ["a.jpg", "b.jpg"]
    assert [row["picture"] for row in vit_demo.table(iter(results.values()))] == [0, 1]
    with torch.no_grad():
        probabilities = module(torch.stack([PIXELS, -PIXELS])).softmax(1)
    for row, expected in zip(rows, probabilities, strict=True):
        assert row["label"] == str(int(expected.argmax())) and row["score"] == pytest.approx(float(expected.max()))
        assert (row["rows"], row["cols"], row["patch_size"], row["model"]) == (4, 4, 8, "Own")
    assert json.loads(json.dumps(rows)) == rows
    whole = results["a.jpg"].to_dict(2)
    assert json.loads(json.dumps(whole)) == whole and len(whole["predictions"]) == 2
    assert whole["predictions"][0] == {"label": rows[0]["label"], "score": pytest.approx(rows[0]["score"])}


def test_a_page_and_a_report_are_one_file_each(tmp_path):
    ex = vit_demo.explore(PIXELS, own())
    ex.to_html(page := tmp_path / "page.html")
    assert page.read_text("utf-8").startswith("<!DOCTYPE html>") and "default-src 'none'" in page.read_text("utf-8")
    with pytest.raises(InputError, match="cannot be written"):
        ex.to_html(tmp_path / "no folder" / "page.html")
    vit_demo.report({"<b>.jpg": ex}, path := tmp_path / "report.html", ["attention", "relevance"], label="2")
    text = path.read_text("utf-8")
    assert "&lt;b&gt;.jpg" in text and "<b>.jpg" not in text and text.count("data:image/webp") == 3 and "for 2" in text
    vit_demo.report([ex], path)
    assert "Picture 1" in path.read_text("utf-8")
    with pytest.raises(LabelError):
        vit_demo.report([ex], path, label="dog")


DEEP = "[" * 3000 + "]" * 3000
HOSTILE = [
    *("Infinity", "-Infinity", "NaN", "1e999", "-1", "0", "1.5", '"x"', '"__proto__"', "null", "true", "{}", "[]"),
    *("[[]]", "[null]", "[1e999]", '["x"]', '["x", "y"]', "[1, 2, 3, 4]", str(10**30), DEEP),
]
SHAPES = [
    *(torch.zeros(0), torch.zeros(1), torch.full((2, 2), torch.nan), torch.zeros(1, 1, 1, 1), torch.zeros(3, 4).int()),
    *(torch.zeros(2, 2, 2, 2, 2), torch.zeros(1, 3, 32, 32, dtype=torch.bool)),
]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A result with dropped patches, and one with everything: what its file holds."""
    ex = vit_demo.explore(PIXELS, own()).drop_patches([(0, 1), (3, 3)])
    ex.save(path := tmp_path_factory.mktemp("saved") / "result")
    return path, load_file(path), json.loads(_metadata(path)["about"])


def use(path: Path) -> None:
    """Whatever needs no network works, or says in a sentence why not."""
    try:
        ex = vit_demo.load_result(path)
    except InputError as error:
        assert "is not a result" in str(error) or "model" in str(error)
        return
    uses = [
        *(ex.to_dict, ex.top, ex.attention, ex.rollout, lambda: ex.overlay(ex.rollout()), lambda: repr(ex)),
        *(
            lambda: vit_demo.table([ex]),
            lambda: ex.is_confident,
            lambda: ex.save(path),
            lambda: ex.heatmap("attention"),
        ),
    ]
    for one in uses:
        with suppress(InputError):
            one()


def places(about: dict, path: tuple = ()) -> list[tuple]:
    found = []
    for name, value in about.items():
        found.append((*path, name))
        if isinstance(value, dict):
            found += places(value, (*path, name))
    return found


def test_hostile_values_in_a_file_are_refused_or_harmless(saved, tmp_path):
    _, tensors, about = saved
    assert len(places(about)) > 40
    for place in places(about):
        for value in HOSTILE:
            changed = json.loads(json.dumps(about))
            inner = changed
            for name in place[:-1]:
                inner = inner[name]
            inner[place[-1]] = "HERE"
            text = json.dumps(changed).replace('"HERE"', value)
            save_file(tensors, broken := tmp_path / "broken", {"format": "vit_demo result 1", "about": text})
            try:
                use(broken)
            except Exception as error:
                raise AssertionError(f"{place} is {value[:40]}") from error
        del inner[place[-1]]
        save_file(tensors, broken, {"format": "vit_demo result 1", "about": json.dumps(changed)})
        use(broken)
    for text in ("5", "[]", "null", DEEP, '"x"', "", "{"):
        save_file(tensors, broken, {"format": "vit_demo result 1", "about": text})
        with pytest.raises(InputError, match="is not a result"):
            vit_demo.load_result(broken)


def test_hostile_tensors_in_a_file_are_refused_or_harmless(saved, tmp_path):
    _, tensors, about = saved
    for name, kept in tensors.items():
        bad = [*SHAPES, kept[..., :-1].contiguous(), torch.zeros_like(kept) - 1]
        if kept.is_floating_point():
            bad += [torch.full_like(kept, torch.nan), torch.full_like(kept, torch.inf), kept.int()]
        else:
            bad += [kept.float(), torch.full_like(kept, 127)]
        for value in bad:
            metadata = {"format": "vit_demo result 1", "about": json.dumps(about)}
            save_file(tensors | {name: value}, broken := tmp_path / "broken", metadata)
            try:
                use(broken)
            except Exception as error:
                raise AssertionError(f"{name} is {value.dtype} {tuple(value.shape)}") from error


@pytest.mark.parametrize("name", ["someone/model", "vit-ti16", "someone/model@main", "/etc", "yours-" + "a" * 22])
@pytest.mark.parametrize("source", ["hub", "bundled"])
def test_a_network_that_a_file_names_is_looked_for_when_it_is_needed_as_a_visitors(
    saved, tmp_path, name, source, monkeypatch
):
    asked = []

    def fetch(repo, *_, trusted=True, **__):
        asked.append((repo, trusted))
        raise vit_demo.PresetError("it is not there")

    for module in ("repository", "network"):
        monkeypatch.setattr(f"vit_demo.weights.hub.{module}.fetch", fetch, raising=False)
    monkeypatch.setattr("vit_demo.weights.hub_presets.fetch", fetch, raising=False)
    monkeypatch.setattr("vit_demo.weights.checkpoints.fetch", fetch, raising=False)
    _, tensors, about = saved
    about = {**about, "preset": {**about["preset"], "name": name, "source": source, "trusted": True}}
    save_file(tensors, broken := tmp_path / "named", {"format": "vit_demo result 1", "about": json.dumps(about)})
    ex = vit_demo.load_result(broken)
    assert not asked and ex.rollout().shape == (4, 4)
    with pytest.raises(InputError):
        ex.relevance()
    assert all(not trusted for repo, trusted in asked if repo.startswith("someone"))
    assert asked or not name.startswith("someone")
