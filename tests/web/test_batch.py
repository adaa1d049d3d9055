"""Several pictures in one call: each has the result of the single endpoint, or its own error."""

import asyncio
import base64

import pytest
from gradio_client import Client, handle_file

from vit_demo.web import limits
from vit_demo.web.batch import BATCHED
from vit_demo.web.frontend.pad import example_picture

ARGUMENTS = {
    "predict": {},
    "explain": {"method": "relevance", "label": "5"},
    "logit_lens": {"patches": True},
    "drop_patches": {"patches": [[0, 0], [1, 2]]},
    "faithfulness": {"method": "rollout"},
    "similarity": {"row": 1, "col": 2},
    "pca": {"remove_background": True},
    "kmeans": {"k": 3},
    "norms": {"block": 1},
}
DIGITS = {"preset": "digits-tiny", "patch_size": 7}


@pytest.fixture(scope="module")
def client(running_page):
    return Client(running_page.local_url, verbose=False)


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    folder = tmp_path_factory.mktemp("digits")
    for digit in (3, 7):
        example_picture(digit).save(folder / f"{digit}.png")
    (folder / "notes.png").write_text("not a picture")
    return {name: folder / f"{name}.png" for name in ("3", "7", "notes")}


@pytest.mark.parametrize("endpoint", BATCHED)
def test_a_batch_has_what_single_calls_return(client, digits, endpoint):
    arguments = DIGITS | ARGUMENTS[endpoint]
    pictures = [handle_file(digits[name]) for name in ("3", "7")]
    found = client.predict(pictures, endpoint, arguments, api_name="/batch")
    single = [client.predict(picture, api_name=f"/{endpoint}", **arguments) for picture in pictures]
    assert found == [{"result": one} for one in single]


def test_a_picture_that_fails_has_its_error_and_the_others_their_results(client, digits):
    data_url = "data:image/png;base64," + base64.b64encode(digits["7"].read_bytes()).decode()
    pictures = [handle_file(digits["3"]), handle_file(digits["notes"]), data_url, "http://127.0.0.1:1/x.png"]
    first, second, third, fourth = client.predict(pictures, "predict", DIGITS, api_name="/batch")
    assert first["result"]["label"] == "3" and third["result"]["label"] == "7"
    assert second.keys() == fourth.keys() == {"error"}
    assert "picture" in second["error"] and "URLs are not fetched" in fourth["error"]


@pytest.mark.parametrize(
    ("pictures", "endpoint", "arguments", "message"),
    [
        ([], "predict", {}, "1 to 64 pictures"),
        (["data:"] * 65, "predict", {}, "1 to 64 pictures"),
        (["data:"], "batch", {}, "no endpoint 'batch'"),
        (["data:"], "overlay", {}, "no endpoint 'overlay'"),
        (["data:"], "__class__", {}, "no endpoint"),
        (["data:"], "predict", {"image": "x"}, "no parameter 'image'"),
        (["data:"], "predict", {"fit": "crop"}, "no parameter 'fit'"),
        (["data:"], "predict", ["digits-tiny"], "JSON object"),
    ],
)
def test_what_is_wrong_with_the_whole_call_is_an_error(client, pictures, endpoint, arguments, message):
    with pytest.raises(Exception, match=message):
        client.predict(pictures, endpoint, arguments, api_name="/batch")


def test_the_bytes_of_all_pictures_are_bounded(client, digits, monkeypatch):
    pictures = [handle_file(digits[name]) for name in ("3", "7")]
    both = sum(digits[name].stat().st_size for name in ("3", "7"))
    monkeypatch.setattr("vit_demo.web.batch.MAX_BATCH_BYTES", both)
    assert len(client.predict(pictures, "predict", DIGITS, api_name="/batch")) == 2
    monkeypatch.setattr("vit_demo.web.batch.MAX_BATCH_BYTES", both - 1)
    with pytest.raises(Exception, match="MB together"):
        client.predict(pictures, "predict", DIGITS, api_name="/batch")


class SlowEndpoint:
    """Takes a while for each picture, and counts how many it had at the same time."""

    def __init__(self) -> None:
        self.running, self.most = 0, 0

    async def __call__(self, image, **_):
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(0.1)
        self.running -= 1
        return {}


@pytest.fixture
def slow(monkeypatch):
    endpoint = SlowEndpoint()
    monkeypatch.setitem(BATCHED, "predict", endpoint)
    return endpoint


def test_a_batch_leaves_the_workers_of_a_lane_to_others(client, slow):
    client.predict(["data:"] * 9, "predict", {}, api_name="/batch")
    assert slow.most == limits.BATCH_WORKERS


def test_pictures_that_are_late_are_refused_and_the_others_have_their_results(client, slow, monkeypatch):
    monkeypatch.setattr("vit_demo.web.batch.BATCH_SECONDS", 0.15)
    found = client.predict(["data:"] * 9, "predict", {}, api_name="/batch")
    late = [i for i, entry in enumerate(found) if "has taken" in entry.get("error", "")]
    assert 0 < len(late) < 9 and late == list(range(late[0], 9)) and found[0] == {"result": {}}


def test_calls_of_one_address_are_bounded(running_page, slow):
    visitors = [Client(running_page.local_url, verbose=False) for _ in range(2)]
    calls = [one.submit(["data:"] * 4, "predict", {}, api_name="/batch") for one in visitors * 3]
    failures = [call.exception() for call in calls]
    refused = [str(failure) for failure in failures if failure]
    assert refused and all("try again in a moment" in failure for failure in refused)
    assert slow.most == limits.BATCH_CALLS_OF_ONE * limits.BATCH_WORKERS
    assert visitors[0].predict(["data:"], "predict", {}, api_name="/batch") == [{"result": {}}]
