"""Questions that take a while: asked again until they are answered, worked on once, given up when nobody asks."""

import threading
import time

import pytest

from vit_demo.web import asking
from vit_demo.web.asking import Asker


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(asking, "PATIENCE", 0.02)


def until_answered(ask, question):
    for _ in range(500):
        said = ask(question)
        if "answer" in said or "error" in said:
            return said
    raise AssertionError("no answer")


def test_a_long_one_tells_how_far_it_is_and_is_worked_on_once():
    asked, go_on = [], threading.Event()

    def work(question, progress):
        asked.append(question)
        progress(3, 10)
        assert go_on.wait(10)
        return {"twice": 2 * question["number"]}

    ask = Asker(work)
    while (said := ask({"number": 4, "about": "it"}))["done"] != 3:
        pass
    assert said == {"done": 3, "total": 10}
    go_on.set()
    assert until_answered(ask, {"about": "it", "number": 4}) == {"answer": {"twice": 8}}
    assert until_answered(ask, {"about": "it", "number": 5}) == {"answer": {"twice": 10}}
    assert [question["number"] for question in asked] == [4, 5]


def test_a_refusal_is_one_sentence_and_not_remembered(caplog):
    failures = [ValueError("No such patch."), RuntimeError("out of memory")]

    def work(question, progress):
        if failures:
            raise failures.pop(0)
        return {"fine": True}

    ask = Asker(work)
    assert until_answered(ask, {}) == {"error": "No such patch."}
    said = until_answered(ask, {})["error"]
    assert "memory" not in said and said.count(".") == 1
    assert "out of memory" in caplog.text
    assert until_answered(ask, {}) == {"answer": {"fine": True}}


def test_work_that_nobody_asks_for_is_given_up_and_can_be_asked_for_again(monkeypatch):
    monkeypatch.setattr(asking, "GIVEN_UP", 0.1)
    ended, rounds = threading.Event(), []

    def work(question, progress):
        rounds.append(0)
        try:
            while rounds[-1] < 200 and len(rounds) == 1:
                rounds[-1] += 1
                progress(rounds[-1], 200)
                time.sleep(0.01)
        finally:
            ended.set()
        return {"rounds": len(rounds)}

    ask = Asker(work)
    assert "done" in ask({})
    assert ended.wait(10)
    assert rounds[0] < 200
    assert until_answered(ask, {}) == {"answer": {"rounds": 2}}
