"""Jobs: once for equal requests, in pools that do not wait for each other, bounded, and given up when nobody waits."""

import asyncio
import gc
import os
import signal
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
import torch

from vit_demo.errors import BusyError, InputError
from vit_demo.service import job as module
from vit_demo.service.job import Cancelled, owner, report
from vit_demo.service.job_limits import GRACE, POOLS, WorkerPool
from vit_demo.service.jobs import JobRunner

from ..asynchronous import PATIENCE, a_moment, run, until
from .job_helpers import held


def long_work():
    """Goes on until it is ended."""
    until(lambda: report(1, 2))


def test_equal_requests_run_once(runner):
    job, go_on = held(runner, "same", "slow")
    again = [runner.submit("same", lambda: "another", "slow") for _ in range(5)]
    assert all(one is job for one in again)
    go_on.set()
    assert [one.result() for one in again] == ["same"] * 5
    assert runner.run("same", lambda: "anew", "slow") == "anew", "what is finished is no longer joined"


def test_too_many_are_refused_in_one_sentence_and_the_next_one_works(runner):
    _, go_on = held(runner, "first", "slow")
    for number in range(4):
        runner.submit(number, lambda: None, "slow")
    with pytest.raises(BusyError, match="busy: try again"):
        runner.submit("one too many", lambda: None, "slow")
    assert runner.run("elsewhere", lambda: "fine", "quick") == "fine"
    go_on.set()
    until(lambda: not runner._active)
    assert runner.run("later", lambda: "fine", "slow") == "fine"


def test_running_jobs_never_need_more_memory_than_there_is(runner, all_count):
    used, most, lock = 0, 0, threading.Lock()

    def work(nbytes):
        nonlocal used, most
        with lock:
            used += nbytes
            most = max(most, used)
        a_moment()
        with lock:
            used -= nbytes

    jobs = [runner.submit(i, lambda: work(60), "wide", 60) for i in range(4)]
    jobs[0].result()
    jobs.append(runner.submit("more than there is", lambda: work(100), "wide", 1000))
    until(lambda: all(job.is_done for job in jobs))
    assert most == 100, "one of 60 at a time, and the largest alone"


def test_work_above_a_visitors_share_of_memory_is_refused_with_a_sentence(runner, monkeypatch):
    monkeypatch.setattr("vit_demo.service.jobs.MEMORY_OF_ONE", 100)
    assert runner.run("the caller of the package decides", lambda: 1, "wide", 101) == 1
    token = owner.set("a visitor")
    try:
        assert runner.run("small", lambda: runner.run("within", lambda: 2, "wide", 100), "wide") == 2
        for begin in (runner.submit, runner.run):
            with pytest.raises(InputError, match="choose a larger patch size"):
                begin("large", lambda: 3, "wide", 101)
        with pytest.raises(InputError, match="choose a larger patch size"):
            runner.run("outer", lambda: runner.run("a network that is loaded", lambda: 4, "wide", 101), "wide")
    finally:
        owner.reset(token)


def test_memory_is_counted_over_all_lanes_and_given_in_order(runner, all_count, monkeypatch):
    (first, go_on), order = held(runner, "first", "wide", 60), []
    large = runner.submit("large", lambda: order.append("large"), "wide", 1000)
    until(lambda: len(runner._memory[False]._waiting) == 1)
    medium = runner.submit("medium", lambda: order.append("medium"), "wide", 30)
    elsewhere = runner.submit("other", lambda: order.append("other"), "quick", 60)
    until(lambda: len(runner._memory[False]._waiting) == 3)
    assert not medium.is_done, "it would fit, and keep the large one waiting"
    monkeypatch.setattr("vit_demo.service.jobs.SMALL_JOB", 50)
    assert runner.submit("little", lambda: "little", "slow", 50).result() == "little", "needs next to nothing"
    go_on.set()
    until(lambda: first.is_done and large.is_done and medium.is_done and elsewhere.is_done)
    assert order[0] == "large"


def test_small_jobs_go_past_a_large_one_that_waits_and_do_not_keep_it_waiting(all_count):
    runner = JobRunner({"wide": WorkerPool(6, 16)}, nbytes=100)
    (first, go_on), go_on_small = held(runner, "first", "wide", 60), threading.Event()
    large = runner.submit("large", lambda: "large", "wide", 75)
    until(lambda: len(runner._memory[False]._waiting) == 1)
    assert [runner.submit(number, lambda: "small", "wide", 20).result() for number in range(5)] == ["small"] * 5
    small = runner.submit("small", go_on_small.wait, "wide", 20)
    until(lambda: small._claimed)
    more = runner.submit("more", lambda: "more", "wide", 20)
    until(lambda: len(runner._memory[False]._waiting) == 2)
    assert not (large.is_done or more.is_done), "20 more would fit, but are kept for the large one"
    go_on.set()
    assert large.poll(PATIENCE) and not small.is_done, "as soon as those end that came before it"
    go_on_small.set()
    assert more.result() == "more" and small.result() and first.result()
    runner.close()


def test_models_of_visitors_take_no_memory_of_others(all_count):
    runner = JobRunner({name: POOLS[name] for name in POOLS if name != "training"}, nbytes=100)
    go_on = threading.Event()
    taken = [
        runner.submit((name, number), go_on.wait, name, 1000)
        for name in POOLS
        if name.startswith("custom")
        for number in range(POOLS[name].workers)
    ]
    until(lambda: len(runner._memory[True]._waiting) == len(taken) - 1)
    for name in ("slow", "photos", "files", "downloads"):
        assert runner.submit(name, lambda: "served", name, 75).result() == "served"
    go_on.set()
    assert all(job.result() for job in taken)
    runner.close()


@pytest.mark.parametrize("large", [90, 1000])
def test_no_visitor_holds_all_memory(all_count, large):
    runner = JobRunner({"slow": WorkerPool(2, 16), "wide": WorkerPool(2, 16)}, nbytes=100)
    go_on = threading.Event()
    running = ask(runner, "flood", "running", go_on.wait, "slow", large)
    until(lambda: running._claimed)
    waiting = ask(runner, "flood", "waiting", lambda: None, "wide", 60)
    until(lambda: runner._memory[False]._waiting)  # where it came first
    for pool in ("slow", "wide"):
        assert ask(runner, "other", pool, lambda: "served", pool, 10).poll(PATIENCE), pool
    assert not waiting.is_done
    go_on.set()
    waiting.result()
    runner.close()


@pytest.fixture
def roomy():
    """Two pools with room for 16."""
    runner = JobRunner({"slow": WorkerPool(1, 16), "wide": WorkerPool(2, 16)}, nbytes=100)
    yield runner
    runner.close()


def ask(runner, who, key, work, pool, nbytes=0):
    """Submits a job for a visitor."""
    token = module.owner.set(who)
    try:
        return runner.submit(key, work, pool, nbytes)
    finally:
        module.owner.reset(token)


def test_visitors_are_served_in_turns(roomy):
    order = []
    _, go_on = held(roomy, "first", "slow")
    flood = [ask(roomy, "flood", number, lambda: order.append("flood"), "slow") for number in range(4)]
    for name in "abc":
        ask(roomy, name, name, lambda name=name: order.append(name), "slow")
    go_on.set()
    until(lambda: len(order) == 7)
    assert order[:4] == ["flood", "a", "b", "c"] and all(job.is_done for job in flood)


def test_no_visitor_occupies_all_threads_of_a_pool(roomy):
    go_on = threading.Event()
    for number in range(2):
        ask(roomy, "flood", number, go_on.wait, "wide")
    assert ask(roomy, "other", "quick", lambda: "served", "wide").result() == "served"
    go_on.set()


def test_no_visitor_fills_a_pool(roomy):
    _, go_on = held(roomy, "first", "slow")
    for who in "abcd":
        for number in range(4):
            ask(roomy, who, (who, number), lambda: None, "slow")
        with pytest.raises(BusyError):
            ask(roomy, who, "one more", lambda: None, "slow")
    last = ask(roomy, "other", "one", lambda: "served", "slow")
    go_on.set()
    assert last.result() == "served"


def test_a_joined_job_comes_in_the_turn_of_whoever_comes_first(roomy):
    order = []
    _, go_on = held(roomy, "first", "slow")
    for number in range(3):
        ask(roomy, "flood", number, lambda number=number: order.append(number), "slow")
    shared = ask(roomy, "flood", "shared", lambda: order.append("shared"), "slow")
    assert ask(roomy, "other", "shared", lambda: order.append("twice"), "slow") is shared
    go_on.set()
    until(lambda: len(order) == 4)
    assert order == [0, "shared", 1, 2]


def test_a_job_has_a_limit_of_time(runner, monkeypatch):
    monkeypatch.setattr(module, "JOB_SECONDS", 0.05)

    with pytest.raises(InputError, match="choose a smaller model"):
        runner.run("long", long_work, "quick")


def test_a_job_that_nobody_waits_for_stops_and_can_be_submitted_again(runner, monkeypatch):
    job = runner.submit("long", long_work, "slow")
    until(lambda: job.total)
    assert not job.poll(0.0)
    monkeypatch.setattr(module, "GRACE", 0.0)
    until(lambda: job.is_done)
    monkeypatch.setattr(module, "GRACE", PATIENCE)
    with pytest.raises(Cancelled):
        job.result()
    assert runner.run("long", lambda: "anew", "slow") == "anew"


def test_polling_keeps_a_job_going(runner, monkeypatch):
    now, go_on = [0.0], threading.Semaphore(0)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def work():
        for done in range(1, 6):
            report(done, 5)
            assert go_on.acquire(timeout=PATIENCE)
        return "the end"

    job = runner.submit("long", work, "slow")
    for step in range(1, 6):
        until(lambda step=step: job.done == step)
        now[0] += 0.9 * GRACE
        assert not job.poll(0.0) and job.total == 5
        go_on.release()
    assert job.result() == "the end"


def test_a_job_is_wanted_while_somebody_waits_however_often_others_have(runner, monkeypatch):
    job, go_on = held(runner, "one", "slow")
    monkeypatch.setattr(module, "GRACE", 0.0)
    for _ in range(3):
        job.poll(0.01)
        assert not job.is_wanted
        with job.waiting(), job.waiting():
            job.poll(0.01)
            assert job.is_wanted
    go_on.set()
    until(lambda: job.is_done)


def test_a_queued_job_that_nobody_waits_for_is_not_started(runner, monkeypatch):
    _, go_on = held(runner, "first", "slow")
    started = []
    job = runner.submit("second", lambda: started.append(1), "slow")
    monkeypatch.setattr(module, "GRACE", 0.0)
    go_on.set()
    until(lambda: job.is_done)
    assert not started


def test_errors_reach_every_waiter(runner):
    def work():
        raise KeyError("gone")

    for _ in range(2):
        with pytest.raises(KeyError, match="gone"):
            runner.run("bad", work, "quick")
    assert runner.run("bad", lambda: "mended", "quick") == "mended"


def test_an_error_that_only_polling_has_seen_is_no_warning(runner, caplog):
    async def visit():
        while not await runner.submit("bad", lambda: 1 / 0, "quick").poll_async(5):
            pass
        gc.collect()

    run(visit())
    assert [one for one in caplog.records if one.name == "asyncio"] == []


def test_awaiting_occupies_no_thread_and_leaving_cancels_nobody_else(runner):
    job, go_on = held(runner, "same", "slow")

    async def visit():
        leaving = asyncio.ensure_future(job.result_async())
        staying = [asyncio.ensure_future(runner.run_async("same", lambda: "anew", "slow")) for _ in range(50)]
        await asyncio.sleep(0)
        leaving.cancel()
        assert not await job.poll_async(0.01)
        go_on.set()
        return await asyncio.gather(*staying)

    assert run(visit()) == ["same"] * 50


def test_closing_finishes_what_runs_and_refuses_what_comes():
    runner = JobRunner({"quick": WorkerPool(1, 4)}, nbytes=1)
    job, go_on = held(runner, "running", "quick")
    waiting = runner.submit("waiting", lambda: "too", "quick")
    with ThreadPoolExecutor(1) as pool:
        closing = pool.submit(runner.close, PATIENCE)
        until(lambda: runner.is_closing)
        go_on.set()
        assert closing.result()
    assert (job.result(), waiting.result()) == ("running", "too")
    with pytest.raises(BusyError, match="shutting down"):
        runner.submit("late", lambda: None, "quick")


def test_closing_ends_what_takes_too_long_with_a_sentence():
    runner = JobRunner({"quick": WorkerPool(1, 4)}, nbytes=1)
    job = runner.submit("long", long_work, "quick")
    visitor = threading.Thread(target=lambda: job.poll(PATIENCE))
    visitor.start()
    runner.close(0.2)
    with pytest.raises(BusyError, match="shutting down"):
        job.result()
    visitor.join()


def test_closing_leaves_nobody_waiting_and_ends_the_threads_that_are_idle():
    runner = JobRunner({"closing quick": WorkerPool(1, 4), "closing slow": WorkerPool(2, 4)}, nbytes=1)
    _, go_on = held(runner, "running", "closing quick")
    queued = runner.submit("queued", lambda: "too", "closing quick")
    assert not runner.close()
    until(lambda: not any("closing slow" in thread.name for thread in threading.enumerate()))
    go_on.set()
    assert queued.poll(PATIENCE)
    with pytest.raises(BusyError, match="shutting down"):
        queued.result()


def test_closing_ends_training_at_once_and_still_accepts_other_work_for_a_while():
    runner = JobRunner({"quick": WorkerPool(1, 4), "training": WorkerPool(1, 4)}, nbytes=1)
    quick, go_on = held(runner, "running", "quick")
    jobs = [runner.submit(number, long_work, "training") for number in range(2)]
    with ThreadPoolExecutor(1) as pool:
        closing = pool.submit(runner.close, PATIENCE, PATIENCE)
        for job in jobs:
            with pytest.raises(BusyError, match="shutting down"):
                job.result()
        assert runner.is_closing and not closing.done()
        with pytest.raises(BusyError, match="shutting down"):
            runner.submit("late", long_work, "training")
        late = runner.submit("late", lambda: "too", "quick")
        go_on.set()
        assert closing.result() and (quick.result(), late.result()) == ("running", "too")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork, as ZeroGPU does")
def test_the_child_of_a_fork_starts_anew_without_the_threads_and_jobs_of_its_parent(runner):
    job, go_on = held(runner, "the parent's", "quick")
    child = os.fork()
    if not child:
        status = 1
        signal.alarm(PATIENCE)  # a child that waits forever fails the test
        try:
            status = 0 if runner.run("the parent's", lambda: "the child's", "quick") == "the child's" else 1
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0, "the child waited, or got what is not its own"
    go_on.set()
    assert job.result() == "the parent's"


def test_each_lane_has_its_own_number_of_threads_and_priority_and_the_callers_stays():
    torch.set_num_threads(3)
    runner = JobRunner(
        {"one": WorkerPool(1, 1, threads=1), "usual": WorkerPool(1, 1), "low": WorkerPool(1, 1, niceness=19)}, nbytes=1
    )
    if sys.platform == "linux":
        assert runner.run(0, lambda: os.getpriority(os.PRIO_PROCESS, threading.get_native_id()), "low") == 19
    assert runner.run(1, torch.get_num_threads, "one") == 1
    assert runner.run(2, torch.get_num_threads, "usual") == 3
    assert torch.get_num_threads() == 3
    later = []
    thread = threading.Thread(target=lambda: later.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    assert later == [3]
    runner.close()


def test_digits_come_first():
    assert POOLS["digits"].niceness < min(
        pool.niceness for name, pool in POOLS.items() if name not in ("digits", "health")
    )


@pytest.mark.parametrize("names_its_cause", [True, False])
def test_a_failed_job_keeps_nothing_of_its_work(runner, names_its_cause):
    class Picture:
        pass

    def decode(picture):
        kept.append(weakref.ref(picture))
        raise ValueError("damaged")

    def fail(picture):
        other = Picture()
        kept.append(weakref.ref(other))
        try:
            decode(picture)
        except ValueError as error:
            if names_its_cause:
                raise InputError("in words") from error
            raise InputError("in words")  # noqa: B904

    kept = []
    gc.disable()  # what a cycle keeps would wait for the collector
    try:
        picture = Picture()
        job = runner.submit("a", lambda picture=picture: fail(picture), "quick")
        del picture
        with pytest.raises(InputError, match="in words"):
            job.result()
        assert len(kept) == 2
        until(lambda: not any(reference() for reference in kept))  # the worker leaves the work after the waiter
    finally:
        gc.enable()
