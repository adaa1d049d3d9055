"""The queue that serves its owners in turns."""

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
