"""Jobs within jobs: in the same thread, joined where they run, and never waiting for each other."""

import threading

from vit_demo.service.job import Job, owner, report

from ..asynchronous import PATIENCE, a_moment, until
from .job_helpers import held


def test_a_job_within_a_job_runs_in_its_thread_and_reports_to_it(runner):
    reported = []

    def inner():
        report(3, 7)
        reported.append((outer.done, outer.total))
        return threading.current_thread().name

    def work():
        return threading.current_thread().name, runner.run("inner", inner, "slow")

    outer = runner.submit("outer", work, "slow")  # one worker: waiting for another one would never end
    first, second = outer.result()
    assert first == second and reported == [(3, 7)]


def test_work_without_a_key_joins_nothing_and_runs_within_its_job(runner):
    started = []
    for _ in range(2):
        runner.run(None, lambda: started.append(threading.current_thread().name), "quick")
    runner.run("outer", lambda: runner.run(None, lambda: started.append(len(runner._active)), "slow"), "quick")
    assert started == ["quick-0", "quick-0", 1]


def test_a_job_within_a_job_is_joined_where_it_runs_already(runner):
    _, go_on = held(runner, "inner", "slow")
    outer = runner.submit("outer", lambda: runner.run("inner", lambda: "twice", "slow"), "quick")
    assert not outer.poll(0.05)
    go_on.set()
    assert outer.result() == "inner"


def test_a_job_within_a_job_can_be_joined_from_without(runner):
    began, go_on = threading.Event(), threading.Event()

    def inner():
        began.set()
        assert go_on.wait(PATIENCE)
        return "once"

    outer = runner.submit("outer", lambda: runner.run("inner", inner, "slow"), "quick")
    assert began.wait(PATIENCE)
    token = owner.set("another")
    try:
        joined = runner.submit("inner", lambda: "twice", "slow")
    finally:
        owner.reset(token)
    go_on.set()
    assert joined.result() == outer.result() == "once"


def test_a_job_goes_on_for_who_waits_though_the_job_around_it_was_given_up():
    outer = Job("outer", lambda: None)
    inner = Job("inner", lambda: None, parent=outer)
    outer.cancel()
    with inner.waiting():
        inner.report(3, 7)
    assert (inner.done, inner.total, outer.total) == (3, 7, 0)


def test_a_job_within_a_job_does_not_wait_for_its_turn(runner):
    """The inner one stands in the queue behind the outer one, which occupies the only worker."""
    go_on = threading.Event()

    def work():
        assert go_on.wait(PATIENCE)
        return runner.run("inner", lambda: "from within", "slow")

    outer = runner.submit("outer", work, "slow")
    queued = runner.submit("inner", lambda: "from the queue", "slow")
    go_on.set()
    assert outer.result() == queued.result() == "from the queue"


def test_a_job_that_waits_for_memory_does_not_keep_another_from_running_it(runner, all_count):
    begun = threading.Event()

    def outer():
        assert begun.wait(PATIENCE)
        until(lambda: runner._memory[False]._waiting)  # a worker has taken the inner job, for which there is no memory
        return runner.run("inner", lambda: "done", "wide", 60)

    job = runner.submit("outer", outer, "wide", 60)
    inner = runner.submit("inner", lambda: "done", "wide", 60)
    begun.set()
    until(lambda: job.is_done and inner.is_done)
    assert job.result() == inner.result() == "done"


def test_a_worker_and_an_outer_job_claim_a_job_one_after_the_other():
    job, found = Job("key", lambda: None), []
    claimers = [threading.Thread(target=lambda: found.append(job.claim())) for _ in range(2)]
    with job._lock:
        for claimer in claimers:
            claimer.start()
        a_moment()
        assert found == [], "each waits for its turn"
    for claimer in claimers:
        claimer.join()
    assert sorted(found) == [False, True]
