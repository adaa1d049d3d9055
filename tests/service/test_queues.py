"""The queue that serves its owners in turns."""

from types import SimpleNamespace

from vit_demo.service import queues
from vit_demo.service.queues import FairQueue


def test_what_waits_is_still_taken_from_a_closed_queue() -> None:
    queue = FairQueue[int](1)
    queue.put("one", 1)
    queue.put("two", 2)
    queue.close()
    assert [queue.take(), queue.take(), queue.take()] == [("one", 1), ("two", 2), None]


def test_an_owner_has_as_many_items_under_way_as_allowed_however_many_are_done() -> None:
    queue = FairQueue[int](2)
    for item in range(6):
        queue.put("one", item)
    for _ in range(3):  # each done gives back one place, and no more
        queue.take()
        queue.take()
        queue.done("one")
        queue.done("one")
    assert not queue._taken
    for item in range(4):
        queue.put("one", item)
    queue.take()
    queue.take()
    queue.done("one")
    queue.take()
    queue.put("other", 7)
    assert queue.take() == ("other", 7), "one has two under way again, and waits"


def test_who_asked_for_much_comes_after_who_asks_for_little_but_does_come(monkeypatch) -> None:
    now = 100.0
    monkeypatch.setattr(queues, "time", SimpleNamespace(monotonic=lambda: now))
    queue = FairQueue[str](2)
    for number in range(30):
        queue.put("much", f"much {number}", 0.5)
    queue.put("little", "little", 0.01)
    assert queue.take() == ("little", "little")
    assert queue.take() == ("much", "much 0")
    served = list[str]()
    for number in range(200):  # one new address after the other, every second
        now += 1.0
        queue.put(f"new {number}", f"new {number}", 0.1)
        owner, item = queue.take() or ("", "")
        queue.done(owner)
        served.append(item)
    assert "much 1" in served, "however many come"
    assert len(queue._due) < 100, "owners are forgotten"


def test_what_an_owner_asked_for_before_delays_it_by_a_minute_at_most(monkeypatch) -> None:
    monkeypatch.setattr(queues, "time", SimpleNamespace(monotonic=lambda: 100.0))
    queue = FairQueue[str](2)
    queue.put("much", "an hour", 3600)
    assert queue.take() == ("much", "an hour")
    queue.put("other", "seven seconds", 7)
    queue.put("much", "next", 0.1)
    assert queue.take() == ("much", "next")
