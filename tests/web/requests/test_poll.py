"""What a request gets until its result is there, in which pool it waits, and what is refused in one sentence."""

import asyncio
import threading
from dataclasses import replace
from functools import wraps
from types import SimpleNamespace

import numpy as np
import pytest

from vit_demo import metrics
from vit_demo.methods import METHODS
from vit_demo.metrics import minimal_sets
from vit_demo.service.engine import get_engine
from vit_demo.service.job import report
from vit_demo.service.job_limits import job_bytes
from vit_demo.web.requests import poll, waiting
from vit_demo.web.requests.kinds import KINDS, RequestKind
from vit_demo.web.requests.packing import INTERNAL_ERROR
from vit_demo.weights import PRESETS

from ...asynchronous import PATIENCE, a_moment, run, until
from ...replies import complete, handle, send, unpack


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "weather"}, "no request 'weather'"),
        ({"kind": "map", "method": "magic"}, "no method 'magic'"),
        ({"kind": "map", "method": "x" * 201}, "method must be a string of at most 200 characters"),
        ({"kind": "map", "method": "relevance", "label": 10}, "no class 10"),
        ({"kind": "map", "method": "relevance", "against": 10}, "no class 10"),
        ({"kind": "map", "method": "relevance", "label": 4, "against": 4}, "compared with itself"),
        ({"kind": "random_order", "against": 10}, "no class 10"),
        ({"kind": "random_order", "baseline": "noise"}, "no such baseline: choose one of mean, blur, black"),
        ({"kind": "random_order", "order": 5}, "no random order 5"),
        ({"kind": "random_order", "order": -1}, "order must be a whole number"),
        ({"kind": "faithfulness", "method": "rollout", "against": "1e9"}, "against must be a whole number"),
        ({"kind": "randomization", "method": "relevance", "against": 10}, "no class 10"),
        ({"kind": "smallest_set"}, "no such set"),
        ({"kind": "smallest_set", "wanted": "enough", "label": 10}, "no class 10"),
        ({"kind": "smallest_set", "wanted": "enough", "without": [16]}, "no patch"),
        ({"kind": "map", "method": "attention", "block": 9}, "no block 9"),
        ({"kind": "map", "method": "attention", "query": 99}, "no patch"),
        ({"kind": "block", "block": 6}, "no block 6"),
        ({"kind": "tokens"}, "block must be a whole number"),
        ({"kind": "tokens", "block": 6}, "no block 6"),
        ({"kind": "tokens", "block": 0, "other": "a picture"}, "second picture has no source"),
        ({"kind": "result", "dropped": [16]}, "no patch (4, 0)"),
        ({"kind": "result", "dropped": list(range(16))}, "At least one patch"),
        ({"kind": "result", "dropped": "all"}, "must be a list"),
        ({"kind": "result", "patch_size": 5}, "no patch size 5"),
        ({"kind": "result", "patch_size": None}, "must be a whole number"),
        ({"kind": "result", "fit": "wide"}, "no fit 'wide'"),
        ({"kind": "result", "digit": "data:image/png;base64,AAAA"}, "drawing cannot be read"),
        ({"kind": "result", "digit": None}, "must have one picture"),
        ({"kind": "result", "example": "cat"}, "must have one picture"),
        ({"kind": "result", "digit": None, "example": "../cat"}, "no such example: choose one of digit-0"),
        ({"kind": "result", "digit": None, "drawing": 3}, "not a drawing"),
        ({"kind": "result", "digit": None, "drawing": "x" * 2_000_000}, "drawing"),
        ({"kind": "model", "name": "cats"}, "not the name of a model on the Hub"),
        ({"kind": "model", "name": None}, "Enter a Vision Transformer"),
        ({"kind": "method_docs", "method": "magic"}, "no method 'magic'"),
    ],
)
def test_an_invalid_request_gets_a_message_and_the_next_one_works(source, changes, message):
    fields = ("drawing", "digit", "example", "upload", "preset", "patch_size", "fit", "dropped")
    changed = {**source, **{name: value for name, value in changes.items() if name in fields}}
    assert message in complete({"source": changed, **{n: v for n, v in changes.items() if n not in fields}})["error"]
    assert len(send(source, "logit_lens")["predictions"]) == 7


@pytest.mark.parametrize(("total", "polls"), [(0, waiting.POLLS_WITHOUT_PROGRESS), (7, 1)])
def test_who_has_progress_to_show_does_not_wait_for_more(total, polls):
    asked = []

    async def poll_async(seconds):
        asked.append(seconds)

    with pytest.raises(waiting.Unfinished) as caught:
        run(waiting.wait_for(SimpleNamespace(done=3, total=total, tried=[], fewest=[], poll_async=poll_async)))
    assert caught.value.args == (3, total, [], []) and asked == polls * [waiting.POLL_SECONDS]


def test_a_bug_is_logged_and_its_details_are_not_sent(source, empty_replies, monkeypatch, caplog):
    monkeypatch.setitem(KINDS, "logit_lens", RequestKind(lambda *_: {}["/secret/path"]))
    assert complete({"kind": "logit_lens", "source": source}) == {"error": INTERNAL_ERROR}
    assert "/secret/path" in caplog.text


def test_a_map_and_its_faithfulness_at_once_compute_the_map_once(source, monkeypatch):
    passes = []
    plain = METHODS["occlusion"]

    @wraps(plain.compute)
    def compute(*arguments, **options):
        passes.append(1)
        a_moment()
        return plain.function(*arguments, **options)

    monkeypatch.setitem(METHODS, "occlusion", replace(plain, function=compute))
    about = {"source": source, "method": "occlusion", "label": 2}

    async def both():
        await asyncio.gather(*(poll.handle({"kind": what, **about}) for what in ("map", "faithfulness")))

    run(both())
    assert send(source, "faithfulness", method="occlusion", label=2)["fractions"] and send(
        source, "map", method="occlusion", label=2
    )
    assert len(passes) == 1


@pytest.fixture
def held(empty_replies, monkeypatch):
    """Tests of faithfulness report 3 of 10 steps, unless they are told not to, and wait until they are let go."""
    go_on, reports = threading.Event(), threading.Event()
    reports.set()

    def work(requested, fields):
        if reports.is_set():
            report(3, 10)
        assert go_on.wait(PATIENCE)
        return {"fine": True}

    monkeypatch.setitem(KINDS, "faithfulness", replace(KINDS["faithfulness"], compute=work))
    monkeypatch.setattr(waiting, "POLL_SECONDS", 0.01)
    yield go_on, reports
    go_on.set()


def test_a_quick_map_does_not_wait_for_slow_ones(source, held):
    go_on, reports = held
    reports.clear()
    slow = [{"kind": "faithfulness", "source": source, "method": "rollout", "label": label} for label in range(10)]

    async def send_all():
        return await asyncio.gather(*map(poll.handle, slow))

    assert [unpack(body) for body in run(send_all())] == [{"done": 0, "total": 0}] * 10
    assert "map" in send(source, "map", method="norm_attention", block=3)
    go_on.set()
    assert [complete(sent) for sent in slow] == [{"result": {"fine": True}}] * 10


def test_progress_is_returned_until_the_result_is_there(source, held):
    sent = {"kind": "faithfulness", "source": source, "method": "rollout", "label": 7}
    while (reply := handle(sent)) != {"done": 3, "total": 10}:
        assert reply == {"done": 0, "total": 0}
    held[0].set()
    assert complete(sent) == {"result": {"fine": True}}


def test_a_search_tells_the_squares_that_it_has_just_tried(source, empty_replies, monkeypatch):
    go_on, tries, evaluated, held = threading.Event(), [], [], []
    search, logits = metrics.necessary_set, minimal_sets.subset_logits

    def evaluate(model, images, present, **options):
        evaluated.extend(frozenset(np.flatnonzero(~row)) for row in present.numpy())
        return logits(model, images, present, **options)

    def held_search(*arguments, tried, **options):
        def show(patches, fewest):
            tries.append([4 * row + column for row, column in patches])
            tried(patches, fewest)
            if fewest and not held:
                held.append([4 * row + column for row, column in fewest])
                assert go_on.wait(PATIENCE)

        return search(*arguments, tried=show, **options)

    monkeypatch.setattr(minimal_sets, "subset_logits", evaluate)
    monkeypatch.setattr(metrics, "necessary_set", held_search)
    monkeypatch.setattr(waiting, "POLL_SECONDS", 0.01)
    sent = {"kind": "smallest_set", "source": source, "wanted": "needed"}
    while not held:
        handle(sent)
    reply = handle(sent)
    assert reply["tried"] == tries[-1] and reply["fewest"] == held[0]
    assert len(tries) < 9, "a first answer after a few passes"
    go_on.set()
    assert complete(sent)["result"]["patches"]
    assert len(tries) > 2 and {frozenset(one) for one in tries} <= set(evaluated), "none that was not"


@pytest.mark.parametrize(("progress", "polls"), [(False, 3), (True, 1)])
def test_one_call_waits_longer_for_a_job_without_progress(source, held, monkeypatch, progress, polls):
    go_on, reports = held
    if not progress:
        reports.clear()
    polled = []

    async def wait(job, seconds):
        if progress:
            await asyncio.to_thread(until, lambda: job.total)
        polled.append(seconds)
        return False

    sent = {"kind": "faithfulness", "source": source, "method": "rollout", "label": polls}
    with monkeypatch.context() as patch:
        patch.setattr("vit_demo.service.job.Job.poll_async", wait)
        assert handle(sent) == ({"done": 3, "total": 10} if progress else {"done": 0, "total": 0})
    assert polled == [waiting.POLL_SECONDS] * polls
    go_on.set()
    assert complete(sent) == {"result": {"fine": True}}


@pytest.mark.parametrize(
    ("kind", "details", "pool"),
    [
        ("map", {"method": "relevance"}, "digits"),
        ("map", {"method": "occlusion"}, "slow"),
        ("logit_lens", {}, "digits"),
        ("randomization", {"method": "relevance"}, "slow"),
        ("random_order", {"baseline": "mean", "seed": 1}, "slow"),
        ("smallest_set", {"wanted": "enough"}, "slow"),
    ],
)
def test_work_of_many_passes_never_delays_digits_and_counts_as_more_memory(
    source, empty_replies, monkeypatch, kind, details, pool
):
    jobs, submitted = get_engine().jobs, []
    submit_job = jobs.submit

    def submit(key, work, pool, nbytes, seconds):
        submitted.append((pool, nbytes))
        return submit_job(key, work, pool, nbytes, seconds)

    monkeypatch.setattr(jobs, "submit", submit)
    handle({"kind": kind, "source": source, **details})
    expected = job_bytes(PRESETS[source["preset"]], source["patch_size"], slow=pool == "slow")
    assert submitted[0] == (pool, expected)
