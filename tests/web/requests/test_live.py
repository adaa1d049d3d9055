"""Live requests: the same answers as ordinary ones, nothing kept, and for each page only the newest picture."""

import asyncio
import base64
import io
import re
import threading

import numpy as np
import pytest
from PIL import Image

from vit_demo import images
from vit_demo.images.reading import MAX_FRAME_CHARACTERS
from vit_demo.service.engine import get_engine
from vit_demo.service.job import owner
from vit_demo.web.catalog.example_digits import example_picture
from vit_demo.web.catalog.example_photos import EXAMPLE_PHOTOS
from vit_demo.web.guard import uploads
from vit_demo.web.requests import live, poll, waiting
from vit_demo.web.requests.kinds import NOTHING_DRAWN
from vit_demo.web.requests.payload import data_url

from ...asynchronous import PATIENCE, run, until
from ...replies import complete, handle, send, unpack

DIGIT = {"preset": "digits-tiny", "patch_size": 7, "fit": "crop"}
PHOTO = {"preset": "photos-tiny", "patch_size": 20, "fit": "crop"}
CAT = Image.open(next(iter(EXAMPLE_PHOTOS.values())).path).convert("RGB")


def drawing(digit: int, turned: int = 0) -> str:
    return data_url(example_picture(digit).rotate(turned, fillcolor=255))


def frame(picture: Image.Image = CAT, side: int = 256, **options) -> str:
    small = picture.resize(
        (round(picture.width * side / min(picture.size)), round(picture.height * side / min(picture.size)))
    )
    file = io.BytesIO()
    small.save(file, "JPEG", **{"quality": 80, **options})
    return "data:image/jpeg;base64," + base64.b64encode(file.getvalue()).decode()


def ask(source, page="page"):
    return complete({"kind": "result", "live": page, "source": source})


def values_of(payload):
    """The arrays of a payload that is shown live, the probabilities by class."""
    grid = payload["num_blocks"], payload["num_heads"], *payload["grid"]
    levels, peaks = payload["attention_maps"].values()
    maps = np.frombuffer(base64.b64decode(levels), "<u2").reshape(grid) / 65535
    maps = maps * np.frombuffer(base64.b64decode(peaks), "<f4").reshape(*grid[:2], 1, 1)
    classes = np.frombuffer(base64.b64decode(payload["predictions"]["indices"]), "<u2")[:12]
    probabilities = np.frombuffer(base64.b64decode(payload["predictions"]["probabilities"]), "<f4")[:12]
    found = {"maps": maps, "probabilities": probabilities[np.argsort(classes)], "classes": np.sort(classes)}
    if payload["early"] is not None:
        found["early"] = np.frombuffer(base64.b64decode(payload["early"]), "<f4")
    return found


SOURCES = {
    "a drawing": {**DIGIT, "drawing": drawing(3, 4)},
    "a drawing without squares": {**DIGIT, "drawing": drawing(5), "dropped": [0, 7]},
    "an example": {**DIGIT, "example": "digit-8"},
    "a photo": {**PHOTO, "example": next(iter(EXAMPLE_PHOTOS))},
    "a photo without squares": {**PHOTO, "example": next(iter(EXAMPLE_PHOTOS)), "dropped": [1, 2, 9]},
}


@pytest.mark.parametrize("name", SOURCES)
def test_a_live_answer_equals_the_ordinary_one_and_has_no_more_than_is_seen(name):
    quick, ordinary = ask(SOURCES[name])["result"], send(SOURCES[name], "result")
    for part, wanted in values_of(ordinary).items():
        np.testing.assert_allclose(values_of(quick)[part], wanted, atol=2e-5 if part == "maps" else 1e-5)
    same = ("size", "pixelated", "box", "grid", "num_prefix_tokens", "num_blocks", "num_heads", "dropped", "pool")
    assert {field: quick[field] for field in same} == {field: ordinary[field] for field in same}
    assert quick["image"] == (ordinary["image"] if ordinary["pixelated"] else "")
    assert (quick["photo"] or {}).get("box") == (ordinary["photo"] or {}).get("box")
    assert quick["rollout"] == {"levels": "", "peaks": ""} and quick["note"] == "" and "trace" not in quick
    assert set(quick["source"]) == {"preset", "patch_size", "fit", "dropped"}
    assert len(quick["predictions"]["labels"]) == min(12, len(ordinary["predictions"]["labels"]))


def test_a_frame_is_the_photo_that_it_is():
    sent = frame()
    picture = Image.open(io.BytesIO(base64.b64decode(sent.partition(",")[2])))
    found, wanted = values_of(ask({**PHOTO, "frame": sent})["result"]), get_engine().explore(picture, "photos-tiny", 20)
    np.testing.assert_allclose(found["maps"], wanted.attention_maps(), atol=2e-5)
    np.testing.assert_allclose(found["probabilities"], wanted.probabilities[found["classes"]], atol=1e-5)


def test_nothing_drawn_is_said_and_no_error():
    paper = data_url(Image.new("L", (280, 280), 255))
    assert ask({**DIGIT, "drawing": paper}) == {"result": {"empty": True, "message": NOTHING_DRAWN}}


def kept():
    """What the server keeps of results and replies, and the files of uploads."""
    caches = [cache.list_keys() for cache in (get_engine()._results, poll._replies)]
    folder = uploads.folder()
    return caches, sorted(folder.rglob("*")) if folder.exists() else []


def test_nothing_is_kept_of_a_picture_but_the_newest_reply_of_its_page():
    send({**DIGIT, "drawing": drawing(3)}, "result")
    ask({**PHOTO, "frame": frame()})
    before, pages = kept(), len(live._newest)
    for turned in range(5):
        ask({**DIGIT, "drawing": drawing(6, turned)}, "pupil")
        ask({**PHOTO, "frame": frame(CAT.rotate(turned))}, "camera")
    assert kept() == before and len(live._newest) <= pages + 2


@pytest.fixture
def busy(monkeypatch):
    """Both threads of live drawings wait until the test lets them go; gives that, and the drawings that are read."""
    go_on, jobs, read = threading.Event(), get_engine().jobs, []
    held = [jobs.submit(object(), lambda: go_on.wait(PATIENCE), "live digits") for _ in range(2)]
    until(lambda: jobs.queues["live digits"].count() == 0)
    monkeypatch.setattr(waiting, "POLL_SECONDS", PATIENCE)  # a reply is the result, however long it takes
    decode = images.decode_drawing
    monkeypatch.setattr(images, "decode_drawing", lambda url: read.append(url) or decode(url))
    yield go_on, read
    go_on.set()
    for job in held:
        until(lambda job=job: job.is_done)


async def ask_as(who, page, sent):
    """A request that is begun, of a visitor's page."""
    owner.set(who)
    known = live._newest.get((who, page))
    reply = asyncio.create_task(poll.handle({"kind": "result", "live": page, "source": {**DIGIT, "drawing": sent}}))
    while live._newest.get((who, page)) is known:
        await asyncio.sleep(0)
    return reply


def test_a_page_that_sends_a_newer_picture_drops_the_older_and_no_other_page_does(busy):
    go_on, read = busy
    sent = [drawing(2, turned) for turned in range(20, 25)]

    async def visit():
        old = await ask_as("a school", "one", sent[0])
        others = [await ask_as("a school", "two", sent[1]), await ask_as("elsewhere", "one", sent[2])]
        assert not old.done()
        new = await ask_as("a school", "one", sent[3])
        assert unpack(await old) == {"done": 0, "total": 0}, "at once, while nothing can be computed"
        assert not read
        go_on.set()
        return [unpack(await reply) for reply in (new, *others)]

    assert all("box" in reply["result"] for reply in run(visit()))
    assert sorted(read) == sorted(sent[1:4]), "what was dropped is not even read"


def test_a_picture_that_takes_long_is_asked_again_and_computed_once(busy, monkeypatch):
    go_on, read = busy
    monkeypatch.setattr(waiting, "POLL_SECONDS", 0.01)
    sent = {"kind": "result", "live": "slow", "source": {**DIGIT, "drawing": drawing(4, 7)}}
    assert handle(sent) == handle(sent) == {"done": 0, "total": 0}
    go_on.set()
    first = complete(sent)
    assert handle(sent) == first and len(read) == 1


def test_ordinary_drawings_wait_for_no_live_one(busy):
    pages = [f"pupil {number}" for number in range(30)]

    async def draw():
        begun = [await ask_as("a school", page, drawing(1, number)) for number, page in enumerate(pages[:3])]
        owner.set("a school")
        reply = await poll.handle({"kind": "result", "source": {**DIGIT, "drawing": drawing(1, 50)}})
        assert not any(one.done() for one in begun)
        busy[0].set()
        return unpack(reply), [unpack(await one) for one in begun]

    reply, live_replies = run(draw())
    assert reply["result"]["predictions"] and all("result" in one for one in live_replies)
    pools = get_engine().jobs._pools
    for pool in ("digits", "photos"):
        assert pools[f"live {pool}"].niceness > pools[pool].niceness, "who has finished a stroke comes first"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"live": ""}, "names its page"),
        ({"live": "x" * 201}, "name of the page must be a string of at most 200"),
        ({"live": 3}, "name of the page must be a string"),
        ({"live": True}, "name of the page must be a string"),
        ({"kind": "map", "method": "occlusion"}, "is for a result"),
        ({"kind": "faithfulness", "method": "rollout"}, "is for a result"),
        ({"kind": "train"}, "is for a result"),
        ({"source": {**PHOTO, "frame": 3}}, "no frame of a camera"),
        ({"source": {**PHOTO, "frame": drawing(3)}}, "frame of the camera cannot be read"),
        ({"source": {**PHOTO, "frame": "data:image/jpeg;base64,AAAA"}}, "frame of the camera cannot be read"),
        ({"source": {**PHOTO, "frame": "data:image/jpeg;base64,!"}}, "frame of the camera cannot be read"),
        ({"source": {**PHOTO, "frame": frame() + "A" * MAX_FRAME_CHARACTERS}}, "frame of the camera cannot be read"),
        ({"source": {**PHOTO, "frame": frame(side=257)}}, "frame of the camera cannot be read"),
        ({"source": {**PHOTO, "frame": frame(), "drawing": drawing(3)}}, "must have one picture: drawing, .*, frame"),
        (
            {"live": None, "source": {**PHOTO, "frame": frame()}},
            "must have one picture: drawing, digit, example, upload.",
        ),
        ({"source": {**DIGIT, "drawing": "x" * 2_000_000}}, "drawing is too large"),
        ({"source": {**DIGIT, "drawing": drawing(3), "dropped": list(range(16))}}, "At least one patch"),
        ({"source": {**DIGIT, "drawing": drawing(3), "preset": "../x"}}, "no preset"),
    ],
)
def test_a_live_request_that_is_none_gets_a_message_and_the_next_one_works(changes, message):
    good = {"kind": "result", "live": "page", "source": {**DIGIT, "drawing": drawing(3)}}
    assert re.search(message, complete({**good, **changes})["error"])
    assert "box" in complete(good)["result"]
