"""Long work of many turns: others come in between, in whichever pool the next turn belongs."""

import threading

import pytest

from vit_demo.errors import InputError
from vit_demo.service import job as module
from vit_demo.service.job import Cancelled, Turn, owner, report

from ..asynchronous import PATIENCE, until
from .job_helpers import held


def ask(runner, who, key, work, pool, seconds=0.1):
    token = owner.set(who)
    try:
        return runner.submit(key, work, pool, seconds=seconds)
    finally:
        owner.reset(token)


def turns(order, count, pool="slow"):
    def work():
        for number in range(count):
            yield Turn(pool)
            report(number, count)
            order.append((number, threading.current_thread().name))
        return "the end"

    return work


def test_who_comes_during_long_work_is_served_before_it_ends(runner):
    order, (_, go_on) = [], held(runner, "first", "slow")
    long = ask(runner, "one", "long", turns(order, 60), "slow")
    quick = ask(runner, "other", "quick", lambda: order.append("quick"), "slow")
    go_on.set()
    assert long.result() == "the end" and quick.is_done
    assert order.index("quick") < 3 and len(order) == 61


def test_the_turns_of_several_alternate(runner):
    order, (_, go_on) = [], held(runner, "first", "slow")

    def work(who):
        for _ in range(5):
            yield Turn("slow")
            order.append(who)

    jobs = [ask(runner, who, who, lambda who=who: work(who), "slow") for who in "ab"]
    go_on.set()
    until(lambda: all(job.is_done for job in jobs))
    assert max(abs(order[:n].count("a") - order[:n].count("b")) for n in range(11)) <= 1, order


def test_a_turn_runs_where_it_belongs(runner):
    def work():
        places = [threading.current_thread().name]
        for pool in ("slow", "quick", "wide"):
            yield Turn(pool)
            places.append(threading.current_thread().name)
        return places

    places = runner.submit("a", work, "quick").result()
    assert [place.partition("-")[0] for place in places] == ["quick", "slow", "quick", "wide"]
    assert runner.run("outer", lambda: runner.run("inner", work, "quick"), "slow") == ["slow-0"] * 4, "within a job"


def test_work_that_nobody_waits_for_has_no_further_turn(runner, monkeypatch):
    order, (_, go_on) = [], held(runner, "first", "slow")

    def work():
        order.append("begun")
        yield Turn("slow")
        order.append("never")

    job = runner.submit("long", work, "quick")
    until(lambda: runner.queues["slow"].count() == 1)
    monkeypatch.setattr(module, "GRACE", 0.0)
    assert runner.submit("long", lambda: "anew", "quick") is not job
    go_on.set()
    until(lambda: job.is_done)  # without waiting for its result, which would be wanting it
    with pytest.raises(Cancelled):
        job.result()
    assert order == ["begun"]


def test_an_error_in_a_later_turn_is_the_result(runner):
    def work():
        yield Turn("slow")
        raise InputError("in words")

    with pytest.raises(InputError, match="in words"):
        runner.run("a", work, "quick")
    assert runner.run("a", lambda: "fine", "quick") == "fine"


def test_two_who_want_the_same_get_it_once(runner):
    order, (_, go_on) = [], held(runner, "first", "slow")
    job = ask(runner, "one", "same", turns(order, 4), "quick")
    until(lambda: runner.queues["slow"].count() == 1)
    assert ask(runner, "other", "same", turns(order, 4), "quick") is job
    go_on.set()
    assert job.result() == "the end" and [number for number, _ in order] == [0, 1, 2, 3]
    until(lambda: not runner._active and not any(queue.count() for queue in runner.queues.values()))


def test_a_runner_that_closes_finishes_what_was_begun(runner):
    order, (_, go_on) = [], held(runner, "first", "slow")
    job = runner.submit("long", turns(order, 5), "slow")
    closing = threading.Thread(target=runner.close, args=(PATIENCE, PATIENCE))
    closing.start()
    until(lambda: runner.is_closing)
    go_on.set()
    assert job.result() == "the end"
    closing.join(PATIENCE)
    assert not closing.is_alive()


def test_short_work_goes_first_and_says_when(runner):
    """Sixteen who train for a minute wait; who comes then for ten seconds waits for none of them."""
    order, (first, go_on) = [], held(runner, "first", "slow")
    for number in range(4):
        ask(runner, f"long {number}", number, lambda: order.append("long"), "slow", seconds=60.0)
    short = ask(runner, "newcomer", "short", lambda: order.append("short"), "slow", seconds=10.0)
    last = ask(runner, "last", "last", lambda: order.append("last"), "slow", seconds=60.0)
    assert 0 <= runner.seconds_until(short) <= 1 and 250 <= runner.seconds_until(last) <= 251
    go_on.set()
    until(lambda: len(order) == 6 and first.is_done)
    assert order == ["short", *["long"] * 4, "last"]
