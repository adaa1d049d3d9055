"""Training on the page: one run at a time for each address, under a name that nobody can guess, bounded, cancelled."""

import base64
import gc
import io
import json
import threading
import weakref
import zipfile
import zlib
from itertools import count
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import vit_demo
from vit_demo.errors import InputError, PresetError
from vit_demo.model import ViTConfig
from vit_demo.service.engine import get_engine
from vit_demo.service.job import Job, Turn, owner
from vit_demo.web.catalog.example_digits import example_picture
from vit_demo.web.requests import kinds, poll, training
from vit_demo.web.requests.packing import pack
from vit_demo.web.requests.poll import handle
from vit_demo.web.requests.training import handle_training
from vit_demo.weights import costs, kept_networks
from vit_demo.weights.digit_folders import save_digits

from ... import asynchronous
from ...asynchronous import until
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

    return asynchronous.run(each())


def finished(begin: dict[str, Any], **more: Any) -> dict[str, Any]:
    [reply] = run({"begin": begin, **more})
    while reply["state"] in ("waiting", "running"):
        [reply] = run({"run": reply["run"]})
    return reply


def asked(request: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(zlib.decompress(asynchronous.run(handle(request)), 31))
    return found


@pytest.fixture(scope="module")
def done() -> dict[str, Any]:
    return finished(BEGIN, source={"example": "digit-3"})


def test_a_run_gives_the_network_of_the_package(done):
    assert done["state"] == "done" and done["step"] == done["steps"] == 25 and done["seed"] == 4
    model, history = vit_demo.train_small(TINY, steps=25, seed=4)
    kept = kept_networks.trained_network(done["model"]).model
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
    save_digits(folder, kept_networks.trained_network(reply["model"]).model, training.History(0))
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
    monkeypatch.setattr(kinds, "archive", lambda _: {"zip": "A" * 4_000_000})
    monkeypatch.setattr(kinds, "pack", lambda reply: (packing.append(threading.get_ident()), pack(reply))[1])

    async def download() -> int:
        await poll.handle({"kind": "train", "download": "mine"})
        return threading.get_ident()

    loop = asynchronous.run(download())
    assert packing and loop not in packing


def test_mistakes_are_digits_that_it_gets_wrong(done):
    model = kept_networks.trained_network(done["model"]).model
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
    before = kept_networks.trained_network(done["before"])
    expected = training.random_network(TINY, seed=4)
    assert not any(p.requires_grad for p in before.model.parameters())
    assert all(torch.equal(a, b) for a, b in zip(before.model.parameters(), expected.parameters(), strict=True))
    title = asked({"kind": "model", "name": done["before"]})["result"]["title"]
    assert title == f"Yours before training ({100 * before.accuracy:.0f} %)" and before.accuracy < 0.3
    assert finished({**BEGIN, "from": done["model"], "steps": 3})["before"] == done["model"]


def test_every_section_takes_the_network_by_its_name(done):
    entry = asked({"kind": "model", "name": done["model"]})["result"]
    assert entry["title"] == f"Yours ({100 * done['accuracy'][-1][1]:.0f} %)" and entry["task"] == "digits"
    source = {"example": "digit-3", "preset": done["model"], "patch_size": 7, "fit": "crop"}
    assert asked({"kind": "result", "source": source})["result"]["source"]["preset"] == done["model"]
    assert "map" in asked({"kind": "map", "method": "relevance", "label": 3, "source": source})["result"]


def test_a_name_cannot_be_guessed_and_says_when_it_is_gone(done):
    assert kept_networks.NAME.fullmatch(done["model"]) and done["run"] not in done["model"]
    other = "yours-" + "a" * 22
    assert asked({"kind": "model", "name": other})["error"] == kept_networks.GONE
    for request in ({"run": "x"}, {"run": 3}, {"run": done["model"]}):
        with pytest.raises(InputError):
            run(request)
    for name in (other, "../x", 3):
        assert "error" in complete({"kind": "train", "download": name})


def test_a_network_that_was_used_is_gone_after_its_hour_as_well(monkeypatch):
    done = finished({**BEGIN, "steps": 2})
    source = {"example": "digit-3", "preset": done["model"], "patch_size": 7, "fit": "crop"}
    assert "result" in asked({"kind": "result", "source": source})
    kept_networks.networks._drop(done["model"])
    for request in (
        {"kind": "model", "name": done["model"]},
        {"kind": "result", "source": {**source, "example": "test-3"}},
    ):
        assert asked(request)["error"] == kept_networks.GONE


def test_runs_of_one_address_take_turns_and_leave_a_core_to_others():
    long = {**BEGIN, "steps": 6000}
    [mine], [second] = run({"begin": long}, who="a"), run({"begin": long}, who="a")
    [theirs] = run({"begin": long}, who="b")
    names = {"mine": mine["run"], "second": second["run"], "theirs": theirs["run"]}

    def states() -> dict[str, str]:
        return {which: run({"run": name})[0]["state"] for which, name in names.items()}

    until(lambda: states() == {"mine": "running", "second": "waiting", "theirs": "running"})
    run({"run": names.pop("mine"), "cancel": True})
    until(lambda: states() == {"second": "running", "theirs": "running"})
    for name in names.values():
        run({"run": name, "cancel": True})
        until(lambda name=name: run({"run": name})[0]["state"] == "ended")
        assert run({"run": name})[0]["model"] == ""


def test_a_short_run_comes_before_the_long_ones_that_wait_and_each_says_how_long():
    """Behind sixteen who train for a minute, ten seconds waited for eight minutes."""
    minute, names = {**BEGIN, "steps": None, "seconds": 60}, []
    try:
        for address in range(6):
            names.append(run({"begin": minute}, who=f"{address}")[0]["run"])
        until(lambda: get_engine().jobs.queues["training"].count() == 4)
        [short] = run({"begin": {**minute, "seconds": 10}}, who="newcomer")
        names.append(short["run"])
        [last] = run({"begin": minute}, who="last")
        names.append(last["run"])
        assert 0 < short["wait"] <= 60, "of those that run"
        assert short["wait"] + 100 < last["wait"] <= 4 * 30 + 5 + 60
        assert [job.turn.seconds for job in get_engine().jobs.queues["training"].before(None)] == [10, *5 * [60]]
    finally:
        for name in names:
            run({"run": name, "cancel": True})
        until(lambda: not get_engine().jobs.queues["training"].count())


def test_a_run_ends_when_nobody_asks(monkeypatch):
    [reply] = run({"begin": {**BEGIN, "steps": 6000}})
    monkeypatch.setattr("vit_demo.service.job.GRACE", 0.0)
    until(lambda: not get_engine().jobs._active)
    [later] = run({"run": reply["run"]})
    assert later["state"] == "ended" and later["step"] < 6000


def test_a_run_goes_on_from_a_trained_network(done):
    again = finished({**BEGIN, "from": done["model"], "steps": 4})
    assert again["loss"][0][1] < done["loss"][0][1] and again["model"] != done["model"]


@pytest.mark.parametrize("heads", [32, 64])
def test_a_training_that_would_take_all_memory_is_refused(heads):
    """Attention of 64 heads was written out for 250 digits at once: one step took 5.9 GB."""
    large = {**FIELDS, "embed_dim": 64, "num_heads": heads, "patch_size": 2, "projection": "per_head"}
    with pytest.raises(InputError, match="too large to be trained here"):
        run({"begin": {"config": large, "steps": 1}})


@pytest.mark.parametrize("begin", [BEGIN, {**BEGIN, "steps": None, "seconds": 10}], ids=["by steps", "by seconds"])
def test_a_training_counts_with_its_memory(begin, monkeypatch):
    begun = []
    waiting = Job(None, lambda: None, Turn("training"))
    monkeypatch.setattr(get_engine().jobs, "submit", lambda *given: begun.append(given) or waiting)
    run({"begin": begin})
    step = costs.training_step(TINY, 64)
    assert begun[0][2:] == ("training", step.nbytes, 25 * step.seconds if begin["steps"] else 10)


def test_a_training_ends_with_its_time(monkeypatch):
    ticks = count()
    monkeypatch.setattr(training, "time", SimpleNamespace(monotonic=lambda: float(next(ticks))))
    monkeypatch.setattr(training, "MAX_SECONDS", 3.0)
    found = finished({**BEGIN, "steps": 10, "seconds": 1})
    assert found["state"] == "done" and 0 < found["step"] < found["steps"] == 10
    assert found["accuracy"][-1][0] == found["step"] and found["model"]


def test_others_drive_out_no_run(monkeypatch):
    monkeypatch.setattr(get_engine().jobs, "submit", lambda *_: Job(None, lambda: None, Turn("training")))
    monkeypatch.setattr(training, "POLL_SECONDS", 0.0)
    [mine] = run({"begin": BEGIN}, who="me")
    for address in "abcd":
        run(*[{"begin": BEGIN}] * 100, who=address)
    assert run({"run": mine["run"]}, who="me")[0]["run"] == mine["run"]


def test_what_cannot_be_gone_on_with_takes_no_place(done):
    with pytest.raises(InputError, match="another shape"):
        run({"begin": {"config": {**FIELDS, "depth": 2}, "from": done["model"]}})


def test_a_trained_network_that_was_looked_into_has_one_owner():
    model = training.random_network(TINY, seed=0).eval()
    name, alive = kept_networks.keep(model, 0.5), weakref.ref(model)
    source = {"example": "digit-3", "preset": name, "patch_size": 7, "fit": "crop"}
    assert "map" in asked({"kind": "map", "method": "relevance", "label": 3, "source": source})["result"]
    assert name not in {key for key, *_ in get_engine()._models.list_keys()}
    kept_networks.networks._drop(name)
    del model
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize(
    "begin",
    [
        None, [], {}, {"config": None}, {"config": {"magic": 1}}, {"config": {**FIELDS, "depth": "x"}},
        {**BEGIN, "config": {**FIELDS, "embed_dim": 4096}}, {**BEGIN, "config": {**FIELDS, "depth": 64}},
        {**BEGIN, "config": {**FIELDS, "patch_size": 1}}, {**BEGIN, "config": {**FIELDS, "mlp_ratio": 1e9}},
        {**BEGIN, "config": {**FIELDS, "mlp_ratio": 1e308}}, {**BEGIN, "config": {**FIELDS, "layer_scale": 1e308}},
        {**BEGIN, "config": {**FIELDS, "norm_eps": 10**400}}, {**BEGIN, "config": {**FIELDS, "pool": "x" * 5000}},
        {**BEGIN, "config": {**FIELDS, "class_token": [0] * 5000}},
        {**BEGIN, "config": ViTConfig().to_dict()}, {**BEGIN, "steps": 10**6}, {**BEGIN, "steps": None, "seconds": 600},
        {**BEGIN, "learning_rate": "1"}, {**BEGIN, "seed": "a"}, {**BEGIN, "num_digits": 10**9}, {**BEGIN, "from": "x"},
    ],
)  # fmt: skip
def test_a_hostile_form_gets_one_sentence(begin):
    with pytest.raises((InputError, PresetError)) as raised:
        finished(begin)
    assert 0 < len(str(raised.value)) < 300
