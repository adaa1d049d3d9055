"""Training on the page: one run at a time for each address, under a name that nobody can guess, bounded, cancelled."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import threading
import time
import zipfile
import zlib
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import vit_demo
from vit_demo.errors import InputError, PresetError
from vit_demo.model import ViTConfig
from vit_demo.service.job import owner
from vit_demo.web.catalog.example_digits import example_picture
from vit_demo.web.requests import poll, training
from vit_demo.web.requests.packing import pack
from vit_demo.web.requests.poll import handle
from vit_demo.web.requests.training import handle_training
from vit_demo.weights import trained

from ...replies import complete

TINY = ViTConfig(
    image_size=28, patch_size=7, in_channels=1, num_classes=10, embed_dim=32, depth=1, num_heads=2, mlp_ratio=2.0
)
FIELDS = TINY.to_dict()
BEGIN = {"config": TINY.to_dict(), "steps": 25, "seed": 4}


def run(*requests: dict[str, Any], who: str = "") -> list[dict[str, Any]]:
    async def each() -> list[dict[str, Any]]:
        owner.set(who)
        return [await handle_training(request) for request in requests]

    return asyncio.run(each())


def finished(begin: dict[str, Any], **more: Any) -> dict[str, Any]:
    [reply] = run({"begin": begin, **more})
    until = time.monotonic() + 60
    while reply["state"] in ("waiting", "running") and time.monotonic() < until:
        [reply] = run({"run": reply["run"]})
    return reply


def asked(request: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(zlib.decompress(asyncio.run(handle(request)), 31))
    return found


@pytest.fixture(scope="module")
def done() -> dict[str, Any]:
    return finished(BEGIN, source={"example": "digit-3"})


def test_a_run_gives_the_network_of_the_package(done):
    assert done["state"] == "done" and done["step"] == done["steps"] == 25 and done["seed"] == 4
    model, history = vit_demo.train_small(TINY, steps=25, seed=4)
    kept = trained.trained_network(done["model"]).model
    assert all(torch.equal(a, b) for a, b in zip(kept.parameters(), model.parameters(), strict=True))
    assert done["accuracy"] == [[step, share] for step, share in history.accuracy]
    assert [round(value, 4) for value in history.loss] == [value for _, value in done["loss"]]


def test_the_visitors_digit_is_the_one_that_is_looked_at(done):
    ex = vit_demo.explore(example_picture(3), _folder(done))
    label, probability = ex.top(1)[0]
    assert done["look"]["label"] == label and done["look"]["probability"] == pytest.approx(probability, abs=1e-5)
    np.testing.assert_allclose(done["look"]["map"], ex.attention(), atol=1e-6)


def _folder(reply: dict[str, Any]) -> Any:
    folder = training.Path(training.tempfile.mkdtemp())
    trained.save_digits(folder, trained.trained_network(reply["model"]).model, training.History(0))
    return folder


def test_the_download_is_a_folder_for_explore(done, tmp_path):
    reply = complete({"kind": "train", "download": done["model"]})["result"]
    with zipfile.ZipFile(io.BytesIO(base64.b64decode(reply["zip"]))) as archive:
        assert archive.namelist() == ["vit_demo-digits/model.safetensors"]
        archive.extractall(tmp_path)
    found = vit_demo.explore(example_picture(3), tmp_path / "vit_demo-digits")
    np.testing.assert_allclose(found.attention(), done["look"]["map"], atol=1e-6)


def test_the_event_loop_packs_no_download(monkeypatch):
    packing: list[int] = []
    monkeypatch.setattr(poll, "archive", lambda _: {"zip": "A" * 4_000_000})
    monkeypatch.setattr(poll, "pack", lambda reply: (packing.append(threading.get_ident()), pack(reply))[1])

    async def download() -> int:
        await poll.handle({"kind": "train", "download": "mine"})
        return threading.get_ident()

    loop = asyncio.run(download())
    assert packing and loop not in packing


def test_mistakes_are_digits_that_it_gets_wrong(done):
    model = trained.trained_network(done["model"]).model
    digits, labels = (part[5000:] for part in training.quick_digits())
    with torch.no_grad():
        found = model(digits).argmax(1)
    wrong = [(int(a), int(b)) for a, b in zip(labels, found, strict=True) if a != b]
    assert [(one["label"], one["predicted"]) for one in done["mistakes"]] == wrong[:12]
    for mistake in done["mistakes"][:3]:
        source = {"example": mistake["example"], "preset": done["model"], "patch_size": 7, "fit": "crop"}
        shown = asked({"kind": "result", "source": source})["result"]
        assert shown["predictions"]["labels"][0] == str(mistake["predicted"])
        picture = Image.open(io.BytesIO(base64.b64decode(mistake["digit"].partition(",")[2])))
        seen = Image.open(io.BytesIO(base64.b64decode(shown["source"]["digit"].partition(",")[2])))
        np.testing.assert_allclose(255 - np.asarray(picture, int), np.asarray(seen, int), atol=2)


def test_the_network_before_the_training_is_there_to_compare_with(done):
    before = trained.trained_network(done["before"])
    expected = training.random_network(TINY, seed=4)
    assert all(torch.equal(a, b) for a, b in zip(before.model.parameters(), expected.parameters(), strict=True))
    title = asked({"kind": "model", "name": done["before"]})["result"]["title"]
    assert title == f"Yours before training ({100 * before.accuracy:.0f} %)" and before.accuracy < 0.3
    assert finished({**BEGIN, "from": done["model"], "steps": 3})["before"] == done["model"]


def test_a_visitor_who_trains_many_networks_drives_out_nobody_elses(monkeypatch):
    network = training.random_network(TINY, seed=0)
    size = 4 * TINY.num_parameters
    monkeypatch.setattr(trained, "BYTES_OF_ONE", 3 * size)
    theirs = trained.keep(network, 0.5, "them")
    mine = [trained.keep(network, 0.5, "me") for _ in range(10)]
    assert trained.trained_network(theirs).owner == "them"
    assert [name in trained._networks() for name in mine] == [False] * 7 + [True] * 3
    assert 2 * 4 * training.TRAINING_LIMITS["parameters"] <= trained.KEPT_BYTES // 4, "a run and the one before it"


def test_every_section_takes_the_network_by_its_name(done):
    entry = asked({"kind": "model", "name": done["model"]})["result"]
    assert entry["title"] == f"Yours ({100 * done['accuracy'][-1][1]:.0f} %)" and entry["task"] == "digits"
    source = {"example": "digit-3", "preset": done["model"], "patch_size": 7, "fit": "crop"}
    assert asked({"kind": "result", "source": source})["result"]["source"]["preset"] == done["model"]
    assert "map" in asked({"kind": "map", "method": "relevance", "label": 3, "source": source})["result"]


def test_a_name_cannot_be_guessed_and_says_when_it_is_gone(done):
    assert trained.NAME.fullmatch(done["model"]) and done["run"] not in done["model"]
    other = "yours-" + "a" * 22
    assert asked({"kind": "model", "name": other})["error"] == trained.GONE
    for request in ({"run": "x"}, {"run": 3}, {"run": done["model"]}):
        with pytest.raises(InputError):
            run(request)
    for name in (other, "../x", 3):
        assert "error" in complete({"kind": "train", "download": name})


def test_a_network_that_was_used_is_gone_after_its_hour_as_well(monkeypatch):
    done = finished({**BEGIN, "steps": 2})
    source = {"example": "digit-3", "preset": done["model"], "patch_size": 7, "fit": "crop"}
    assert "result" in asked({"kind": "result", "source": source})
    monkeypatch.delitem(trained._networks(), done["model"])
    for request in (
        {"kind": "model", "name": done["model"]},
        {"kind": "result", "source": {**source, "example": "test-3"}},
    ):
        assert asked(request)["error"] == trained.GONE


def test_runs_of_one_address_take_turns_and_leave_a_core_to_others():
    long = {**BEGIN, "steps": 3000}
    [mine], [second] = run({"begin": long}, who="a"), run({"begin": long}, who="a")
    [theirs] = run({"begin": long}, who="b")
    names = {"mine": mine["run"], "second": second["run"], "theirs": theirs["run"]}
    until = time.monotonic() + 30

    def states() -> dict[str, str]:
        return {which: run({"run": name})[0]["state"] for which, name in names.items()}

    while (found := states()) != {"mine": "running", "second": "waiting", "theirs": "running"}:
        assert time.monotonic() < until, found
    run({"run": names.pop("mine"), "cancel": True})
    while (found := states()) != {"second": "running", "theirs": "running"}:
        assert time.monotonic() < until, found
    for name in names.values():
        run({"run": name, "cancel": True})
        while run({"run": name})[0]["state"] != "ended" and time.monotonic() < until:
            time.sleep(0.05)
        assert run({"run": name})[0]["model"] == ""


def test_a_run_ends_when_nobody_asks(monkeypatch):
    monkeypatch.setattr("vit_demo.service.job.GRACE", 0.05)
    [reply] = run({"begin": {**BEGIN, "steps": 3000}})
    time.sleep(1.0)
    [later] = run({"run": reply["run"]})
    assert later["state"] == "ended" and later["step"] < 3000


def test_a_run_goes_on_from_a_trained_network(done):
    again = finished({**BEGIN, "from": done["model"], "steps": 4})
    assert again["loss"][0][1] < done["loss"][0][1] and again["model"] != done["model"]


@pytest.mark.parametrize(
    "begin",
    [
        None, [], {}, {"config": None}, {"config": {"magic": 1}}, {"config": {**FIELDS, "depth": "x"}},
        {**BEGIN, "config": {**FIELDS, "embed_dim": 4096}}, {**BEGIN, "config": {**FIELDS, "depth": 64}},
        {**BEGIN, "config": {**FIELDS, "patch_size": 1}}, {**BEGIN, "config": {**FIELDS, "mlp_ratio": 1e9}},
        {**BEGIN, "config": ViTConfig().to_dict()}, {**BEGIN, "steps": 10**6}, {**BEGIN, "steps": None, "seconds": 600},
        {**BEGIN, "learning_rate": "1"}, {**BEGIN, "seed": "a"}, {**BEGIN, "num_digits": 10**9}, {**BEGIN, "from": "x"},
    ],
)  # fmt: skip
def test_a_hostile_form_gets_one_sentence(begin):
    with pytest.raises((InputError, PresetError)) as raised:
        finished(begin)
    assert 0 < len(str(raised.value)) < 300
