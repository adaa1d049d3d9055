"""Requests that take long leave room for others, and none is worked on by the event loop."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import ImageFile
from torch.utils._python_dispatch import TorchDispatchMode

from vit_demo.images import reading
from vit_demo.methods import METHODS
from vit_demo.model import ViT, ViTConfig
from vit_demo.service import queues
from vit_demo.service.engine import get_engine
from vit_demo.service.job import Job, owner
from vit_demo.service.job_limits import POOLS
from vit_demo.service.jobs import JobRunner
from vit_demo.web.catalog.example_digits import example_picture
from vit_demo.web.guard import uploads
from vit_demo.web.requests import maps, parse, poll, teaching, tokens
from vit_demo.web.requests.kinds import KINDS
from vit_demo.web.requests.payload import data_url
from vit_demo.weights import costs, kept_networks

from ...asynchronous import run, until
from ...replies import unpack

FIT = {"fit": "crop"}
FINE = {"preset": "digits-small", "patch_size": 2, **FIT}
TRAINED = ViTConfig(image_size=28, patch_size=7, in_channels=1, num_classes=10, embed_dim=32, depth=1, num_heads=2)


def answer(request, who="a visitor"):
    async def ask():
        owner.set(who)
        return await poll.handle(request)

    while not {"result", "error"} & (reply := unpack(run(ask()))).keys():
        pass
    assert "result" in reply, reply
    return reply["result"]


def digit(number):
    return {"example": f"test-{number}"}


def drawing(angle):
    return {"drawing": data_url(example_picture(3).rotate(angle, fillcolor=255))}


@pytest.fixture
def photos(tmp_path, monkeypatch):
    """Names of pictures that were uploaded."""
    paths = {f"photo {number}": tmp_path / f"{number}.png" for number in range(13)}
    for number, path in enumerate(paths.values()):
        example_picture(number % 10).rotate(number, fillcolor=255).save(path)
    monkeypatch.setattr(uploads, "find", lambda sent: paths[sent])
    monkeypatch.setattr(uploads, "read", lambda path: path.read_bytes())
    return [{"upload": name} for name in paths]


@pytest.fixture
def one_worker(monkeypatch):
    """Pools of one worker, so that work of two visitors in one pool cannot run at once."""
    monkeypatch.setattr(queues, "time", SimpleNamespace(monotonic=lambda: 0.0))  # no machine decides who is due
    runner = JobRunner({name: replace(pool, workers=1) for name, pool in POOLS.items()})
    monkeypatch.setattr(get_engine(), "jobs", runner)
    monkeypatch.setattr(poll, "_replies", poll.ByteCache(0, len))
    yield runner
    runner.close()


def teach(pictures, **base):
    halves = [{"name": name, "examples": pictures[place::2]} for place, name in enumerate("ab")]
    return {"kind": "teach", "classes": halves, **base}


@pytest.mark.parametrize("attack", ["teach", "teach uploads", "tokens"])
def test_a_drawing_or_photo_that_comes_during_long_work_is_served_before_it_ends(
    attack, one_worker, photos, monkeypatch
):
    sent = {
        "teach": teach([digit(number) for number in range(60)], **FINE),
        "teach uploads": teach(photos[:12], preset="photos-tiny", patch_size=20, **FIT),
        "tokens": {"kind": "tokens", "block": 1, "source": {**drawing(5), **FINE}, "other": drawing(6)},
    }[attack]
    photo = {**photos[-1], "preset": "photos-tiny", "patch_size": 20, **FIT}
    bystander = {"kind": "result", "source": photo if "uploads" in attack else {**drawing(7), **FINE}}
    pool = "files" if "uploads" in attack else "digits"
    served, others, done = [], ThreadPoolExecutor(1), []
    where, name = (maps.RequestedResult, "explore") if attack == "tokens" else (teaching, "read_token")
    real = getattr(where, name)

    def first(*given, **options):
        if not done:
            done.append(0)
            served.append(others.submit(answer, bystander, "bystander"))
        if name == "read_token" or len(done) == 1:  # the attacker's: he never goes on while the other is on his way
            until(lambda: served[0].done() or one_worker.queues[pool].count())
        done.append(served[0].done())
        return real(*given, **options)

    monkeypatch.setattr(where, name, first)
    at_the_end = []
    for module, last in ((teaching, "fitted"), (tokens, "token_payload")):
        whole = getattr(module, last)
        monkeypatch.setattr(module, last, lambda *given, of=whole: (at_the_end.append(served[0].done()), of(*given))[1])
    answer(sent, "attacker")
    until(served[0].done)
    assert served[0].result()["predictions"]
    assert set(at_the_end) == {True}, "done again where it ended between two polls, as no reply is kept"
    assert attack == "tokens" or True in done[1:8], "after a few of its pictures"


class Large(TorchDispatchMode):
    """Refuses, in this thread, what takes torch time: more than a few numbers."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        assert not isinstance(out, torch.Tensor) or out.numel() < 10_000, f"{func} of {tuple(out.shape)}"
        return out


@pytest.fixture(scope="module")
def names():
    """A network that was trained, and the same before, which is built whenever it is used; and the link of a taught."""
    model = ViT(TRAINED).eval()
    taught = answer(teach([drawing(angle) for angle in range(4)], **FINE))["model"]
    before = kept_networks.keep_before(lambda: ViT(TRAINED).eval(), TRAINED, 0.1)
    return kept_networks.keep(model, 0.5), before, taught["link"]


def requests_of(kind, names):
    """Lawful requests of a kind, each of work that takes time."""
    after, before, link = names
    begin = {"config": TRAINED.to_dict(), "steps": 1}
    config = {**TRAINED.to_dict(), "embed_dim": 64}
    special = {
        "method_docs": [{"method": "relevance"}],
        "models": [{}],
        "model": [{"name": "digits-small"}, {"name": before}, {"name": "taught-" + 22 * "x", "taught": link}],
        "network": [{"config": config, "patch_size": 2}],
        "train": [{"begin": {**begin, "from": before}, "source": drawing(1)}, {"download": after}],
        "teach": [teach([drawing(10 + angle) for angle in range(4)], **FINE)],
    }
    if kind in special:
        return special[kind]
    fields = {
        "map": {"method": "relevance"}, "block": {"block": 0}, "attention_maps": {"query": 1},
        "steps_patch": {"query": 1}, "tokens": {"block": 0, "other": drawing(21)},
        "faithfulness": {"method": "relevance"},
        "randomization": {"method": "relevance"}, "smallest_set": {"wanted": "enough"},
    }  # fmt: skip
    sources = [{"preset": "digits-small", "patch_size": 7}, {"preset": before, "patch_size": 7}]
    return [{"source": {**drawing(20), **source, **FIT}, **fields.get(kind, {})} for source in sources]


@pytest.mark.parametrize("kind", [name for name in KINDS if getattr(KINDS[name], "cost", None) is costs.many_passes])
def test_work_of_many_passes_ends_with_its_visitor(kind, names, monkeypatch):
    reports, report = [], Job.report

    def leave(job, done, total):
        reports.append((done, total))
        job.cancel()
        report(job, done, total)

    request = {"kind": kind, **requests_of(kind, names)[0]}
    request["source"] |= {"dropped": [3]}  # of which nothing is cached
    until(lambda: not get_engine().jobs._active)  # what others have left
    monkeypatch.setattr(poll, "_replies", poll.ByteCache(0, len))
    monkeypatch.setattr(Job, "report", leave)
    while not reports:
        assert unpack(run(poll.handle(request))) == {"done": 0, "total": 0}, "it waits, or has ended"
    until(lambda: not get_engine().jobs._active)
    assert len(reports) == 1, "it goes on until its end"


def test_every_method_of_many_passes_reports_them():
    assert all(method.reports_progress for method in METHODS.values() if method.is_slow)


@pytest.mark.parametrize("kind", KINDS)
def test_the_event_loop_builds_no_network_reads_no_picture_and_computes_nothing(kind, names, monkeypatch):
    in_a_loop = []

    def watched(where, name):
        real = getattr(where, name)

        def noted(*given, **options):
            if asyncio._get_running_loop() is not None:
                in_a_loop.append(name)
            return real(*given, **options)

        monkeypatch.setattr(where, name, noted)

    watched(ViT, "__init__")
    watched(ImageFile.ImageFile, "load")
    watched(reading, "check_size")
    watched(np.linalg, "svd")
    monkeypatch.setattr(poll, "_replies", poll.ByteCache(0, len))
    monkeypatch.setattr(parse, "_pictures", parse.ByteCache(0, lambda _: 1))

    async def ask(request):
        with Large():
            return await poll.handle(request)

    for request in requests_of(kind, names):
        while "done" in (reply := unpack(run(ask({"kind": kind, **request})))):
            pass
        assert "result" in reply, reply
        if run_ := kind == "train" and reply["result"].get("run"):
            while answer({"kind": "train", "run": run_})["state"] in ("waiting", "running"):
                pass
    assert not in_a_loop
