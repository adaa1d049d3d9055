"""A cache that counts bytes."""

import threading

import pytest

from vit_demo.inference.cache import ENTRY_BYTES, ByteCache

from ..asynchronous import a_moment, at_once


def test_it_holds_no_more_than_its_bytes_and_evicts_the_least_recently_used():
    cache = ByteCache(3 * (100 + ENTRY_BYTES), len)
    for name in "abc":
        cache.put(name, bytes(100))
    assert cache.get("a") == bytes(100)
    cache.put("d", bytes(100))
    assert cache.list_keys() == ["c", "a", "d"] and cache.num_bytes == cache.max_bytes
    cache.put("e", bytes(150))
    assert cache.list_keys() == ["d", "e"]
    cache.put("huge", bytes(10_000))
    assert "huge" not in cache and cache.list_keys() == ["d", "e"]
    cache.put("d", bytes(10))
    assert cache.list_keys() == ["e", "d"] and cache.num_bytes == 160 + 2 * ENTRY_BYTES


def test_many_small_entries_are_bounded_too():
    cache = ByteCache(100_000, len)
    for number in range(10_000):
        cache.put(number, b"")
    assert len(cache.list_keys()) == 100


def test_what_has_grown_is_measured_again():
    cache = ByteCache(1000 + 2 * ENTRY_BYTES, len, growing=True)
    first = bytearray(100)
    cache.put("first", first)
    first.extend(bytes(800))
    cache.put("second", bytes(200))
    assert cache.list_keys() == ["second"]


@pytest.mark.parametrize(
    "call",
    [
        lambda cache: cache.put("b", b"b"),
        lambda cache: cache.get("a"),
        lambda cache: cache.num_bytes,
        lambda cache: cache.list_keys(),
    ],
)
def test_while_one_thread_changes_it_others_wait(call):
    waiting = []

    def size_of(value):
        """Called in the middle of ``put``."""
        if value == b"a":
            waiting.append(threading.Thread(target=call, args=(cache,)))
            waiting[0].start()
            a_moment()
            waiting.append(waiting[0].is_alive())
        return len(value)

    cache = ByteCache(10 * ENTRY_BYTES, size_of)
    cache.put("a", b"a")
    waiting[0].join()
    assert waiting[1] is True


def test_threads_do_not_harm_each_other():
    cache = ByteCache(50 * (10 + ENTRY_BYTES), len)

    def work(start):
        for number in range(start, start + 2000):
            cache.put(number % 90, bytes(10))
            cache.get(number % 70)

    at_once(*(lambda start=start: work(start) for start in range(4)))
    assert len(cache.list_keys()) == 50 and cache.num_bytes == cache.max_bytes
